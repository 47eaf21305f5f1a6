"""What a marker or a factory was told, checked before a fake is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.options import keywords_of
from fakebrokers.protocol import Protocol, known_name

#: Keywords that say nothing of the broker itself: a real one does without.
INCIDENTAL = frozenset({"profile", "exact", "seed", "journal_limit", "body_limit"})


def marked_options(item: pytest.Item | pytest.Collector, protocol: Protocol) -> dict[str, Any]:
    """The keywords of all markers that apply to a test, a class or a module, the closest last.

    Raises:
        UsageError: One of them makes no sense for this protocol.
    """
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("fakebrokers"))):
        check_names(marker.args)
        if not marker.args or protocol.name in marker.args:
            check_keywords(marker.kwargs, protocol, "marker fakebrokers", may_name=not marker.args)
            options.update(marker.kwargs)
    return options


def check_names(names: Sequence[Any]) -> None:
    """Raise `UsageError` unless these, by position in a marker, are names of protocols."""
    for name in names:
        if not isinstance(name, str):
            raise UsageError(
                "marker fakebrokers: expected names of protocols by position and everything else by "
                f"keyword, such as faults=[...]; got {name!r}"
            )
        known_name(name)


def check_keywords(options: Mapping[str, Any], protocol: Protocol, where: str, *, may_name: bool) -> None:
    """Raise `UsageError` for keywords that this protocol's fakes do not have.

    Args:
        may_name: Whether the message recommends to name the protocol that is meant.
    """
    known = keywords(protocol)
    for name in options:
        if name not in known and name not in protocol.load()._old_keywords:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            if may_name and not close:
                hint = "; if it is for another fake of this test, name that one's protocol first."
            raise UsageError(
                f"{where}: {protocol.server_name} has no {name!r}{hint} It has: {', '.join(known)}"
            )


def keywords(protocol: Protocol) -> list[str]:
    """What the server class of a protocol can be told."""
    return list(keywords_of(protocol.load()))


def plan_of(faults: Any, folder: Path, where: str) -> Any:
    """What a server class takes for faults, from a list, a plan, or a path in `folder`."""
    from fakebrokers.faults import Fault, Plan

    if isinstance(faults, str | Path):
        return folder / faults
    if isinstance(faults, list | tuple):
        return {"faults": faults}
    if faults is None or isinstance(faults, Plan | Mapping):
        return faults
    wanted = f"faults=[{faults.name or 'it'}]" if isinstance(faults, Fault) else "faults=[drop(...)]"
    raise UsageError(
        f"{where}: expected a list of faults, a plan or a plan's path, such as {wanted}; got {faults!r}"
    )
