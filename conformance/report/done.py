"""What was done to a client in one run, in words: the faults of its plan, then what was said by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.results import RowResult
from conformance.suite.story import fault_in_words


def done_to(result: RowResult) -> list[str]:
    """A line for each fault of the fake or of the proxy, then one for each frame that the script said itself.

    Such a frame comes with the codes of its items: a reader sees what the client got.
    """
    return [*map(fault_in_words, _faults(result.plan)), *(f"by hand: {text}" for text in result.by_hand)]


def _faults(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The faults of a plan; what is none is left out, the page shows the plan as it is too."""
    proxy = plan.get("proxy")
    lists = (plan.get("faults"), proxy.get("faults") if isinstance(proxy, Mapping) else None)
    return [row for rows in lists if isinstance(rows, list | tuple) for row in rows if _is_fault(row)]


def _is_fault(row: Any) -> bool:
    if not isinstance(row, Mapping) or not isinstance(row.get("match"), Mapping):
        return False
    effect = row.get("effect")
    effects = effect if isinstance(effect, list) else [effect]
    return all(isinstance(each, Mapping) and "type" in each for each in effects)
