"""Which mutants fail which scenario, without running them: ``kills.json`` beside this file.

``fakebrokers mutants --write`` writes it. The project's tests run one mutant of each row (`cover`), and
in the night all of them: it stays true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Key
from fakebrokers.files import by_rows

PLACE = Path(__file__).with_name("kills.json")
_FIELDS = ("id", "protocol", "variant", "killed_by")


class ProvenRow(Protocol):
    """What the matrix says of a scenario: see `MatrixRow`."""

    @property
    def key(self) -> Key:
        """Of the scenario."""

    @property
    def killed_by(self) -> list[str]:
        """The mutants that it catches."""

    @property
    def is_proven(self) -> bool:
        """Whether that says anything."""


P = TypeVar("P", bound=ProvenRow)


@cache
def known_kills(place: Path = PLACE) -> dict[Key, tuple[str, ...]]:
    """The mutants that fail a scenario, by its key."""
    if not place.exists():
        return {}
    rows = json.loads(place.read_text(encoding="utf-8"))["scenarios"]
    return {(row["id"], row["protocol"], row["variant"]): tuple(row["killed_by"]) for row in rows}


def cover(kills: Mapping[Key, Sequence[str]]) -> dict[Key, str]:
    """One mutant for each scenario that has any, so that as many mutants as possible are among them.

    That is a maximum matching of scenarios and mutants (Kuhn's augmenting paths); a scenario all of whose
    mutants are taken by others gets the first of its own.
    """
    taken: dict[tuple[str, str], Key] = {}

    def find_one_for(key: Key, visited: set[tuple[str, str]]) -> bool:
        for name in kills[key]:
            one = key[1], name
            if one not in visited:
                visited.add(one)
                if one not in taken or find_one_for(taken[one], visited):
                    taken[one] = key
                    return True
        return False

    for key in kills:
        find_one_for(key, set())
    chosen = {key: name for (_, name), key in taken.items()}
    return {key: chosen.get(key, names[0]) for key, names in kills.items() if names}


def write_kills(rows: Sequence[P], place: Path = PLACE) -> list[P]:
    """Put proven rows in the place of older ones, and forget scenarios that are no more.

    Returns:
        The rows that are not proven, which change nothing.
    """
    proven = {row.key: tuple(row.killed_by) for row in rows if row.is_proven}
    kept = known_kills(place) | proven
    listed = [(*item.key, kept[item.key]) for item in all_scenarios() if item.key in kept]
    place.write_text(by_rows({"scenarios": [dict(zip(_FIELDS, each, strict=True)) for each in listed]}))
    known_kills.cache_clear()
    return [row for row in rows if not row.is_proven]
