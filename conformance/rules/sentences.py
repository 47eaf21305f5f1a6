"""The rules as people read them: what each demands, why, what it rests on, and an example.

All of it stands in the docstring of the check. A rule that several checks share is explained by one of them.
"""

from __future__ import annotations

import re
from functools import cache
from inspect import getdoc
from typing import NamedTuple

from conformance.results import Level
from conformance.rules.registry import INVARIANTS, Invariant
from fakebrokers.protocol import protocol_names

_SECTION = re.compile(r"^(Why|Rests on|Example|Level|Judges):$", re.MULTILINE)


class Rule(NamedTuple):
    """A rule for all runs, explained.

    Attributes:
        sentences: What it demands; one for each of its checks.
        why: What an application suffers where it is broken.
        rests_on: The clauses and facts that it rests on, one for each protocol where they differ.
        example: One violation, as it is reported.
        reason: Why its level is SHOULD; empty for MUST.
        protocols: Whose clients it judges; empty: those of all.
    """

    name: str
    level: Level
    sentences: tuple[str, ...]
    why: str
    rests_on: tuple[str, ...]
    example: str
    reason: str
    protocols: tuple[str, ...]

    def clauses(self, protocol: str) -> tuple[str, ...]:
        """What it rests on for clients of one protocol."""
        heads = {text: text.partition(": ")[0].lower().replace(" ", "-") for text in self.rests_on}
        is_named = protocol in heads.values()
        left_out = {*protocol_names(), *(("elsewhere",) if is_named else ())} - {protocol}
        return tuple(text for text, head in heads.items() if head not in left_out)


@cache
def rules() -> dict[str, Rule]:
    """All rules by name, in alphabetical order."""
    checks: dict[str, list[Invariant]] = {}
    for each in INVARIANTS.values():
        checks.setdefault(each.name, []).append(each)
    return {name: _rule(name, checks[name]) for name in sorted(checks)}


def _rule(name: str, checks: list[Invariant]) -> Rule:
    sections = [found for each in checks if (found := _sections(each))]
    if len(sections) != 1:
        raise ValueError(f"{name}: expected one check with a section Why, got {len(sections)}")
    [found] = sections
    return Rule(
        name=name,
        level=checks[0].level,
        sentences=tuple(dict.fromkeys(each.about for each in checks)),
        why=" ".join(found.get("Why", "").split()),
        rests_on=_items(found.get("Rests on", "")),
        example=" ".join(found.get("Example", "").split()),
        reason=" ".join(found.get("Level", "").split()),
        protocols=tuple(found.get("Judges", "").replace(",", " ").split()),
    )


def _sections(check: Invariant) -> dict[str, str]:
    """The sections of a check's docstring by their headings."""
    _, *rest = _SECTION.split(getdoc(check.check) or "")
    return dict(zip(rest[::2], rest[1::2], strict=True))


def _items(text: str) -> tuple[str, ...]:
    """The items of a section; lines that are indented further go on with the one before."""
    found: list[str] = []
    for line in text.strip("\n").splitlines():
        is_more = line.startswith(" " * 8) and bool(found)
        found[-1:] = [f"{found[-1]} {line.strip()}"] if is_more else [*found[-1:], line.strip()]
    return tuple(each for each in found if each)
