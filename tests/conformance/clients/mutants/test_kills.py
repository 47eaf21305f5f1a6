"""The table of kills in the tree; that each of its rows holds is what tests/scenarios proves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.clients.mutants.kills import cover, known_kills, write_kills
from conformance.clients.mutants.matrix import MatrixRow, candidates
from conformance.clients.reference.registry import protocols
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario

PROVABLE = [item for item in all_scenarios() if item.protocol in protocols() and not item.soak]


@pytest.mark.parametrize("item", PROVABLE, ids=lambda item: item.label)
def test_every_scenario_has_a_row_whose_mutants_exist(item: Scenario) -> None:
    listed = known_kills().get(item.key, ())
    assert listed, "run `fakebrokers mutants --write`"
    assert set(listed) <= {one.name for one in candidates(item)}


def test_no_row_is_left_of_a_scenario_that_is_no_more() -> None:
    assert known_kills().keys() <= {item.key for item in all_scenarios()}


def test_only_proven_rows_replace_older_ones(tmp_path: Path) -> None:
    place = tmp_path / "kills.json"
    first, second = (
        MatrixRow(*PROVABLE[n].key, mode="memory", reference="pass", killed_by=["a"]) for n in (0, 1)
    )
    gone = MatrixRow("RMQS-0.00", "rabbitmq-stream", "", mode="memory", reference="pass", killed_by=["a"])
    assert write_kills([second, gone, first], place) == []
    again = MatrixRow(*PROVABLE[0].key, mode="memory", reference="pass", killed_by=["b", "c"])
    failed = MatrixRow(*PROVABLE[1].key, mode="memory", reference="fail")
    assert write_kills([again, failed], place) == [failed]
    assert known_kills(place) == {PROVABLE[0].key: ("b", "c"), PROVABLE[1].key: ("a",)}
    row = json.loads(place.read_text())["scenarios"][0]
    assert row == {
        **{name: getattr(again, name) for name in ("id", "protocol", "variant")},
        "killed_by": ["b", "c"],
    }


def test_a_cover_has_as_many_mutants_as_there_can_be() -> None:
    """Greedy choice would give `a` to the first and leave nothing new for the second."""
    first, second, third = (("X-1.01", "pzq", ""), ("X-1.02", "pzq", ""), ("X-1.03", "pzq", ""))
    assert cover({first: ("a", "b"), second: ("a",), third: ("b", "a")}) == {
        first: "b",
        second: "a",
        third: "b",  # taken: its own first
    }
    other = ("X-1.01", "narconi", "")
    assert cover({first: ("a",), other: ("a",)}) == {first: "a", other: "a"}, "another protocol's `a`"


def test_the_cover_proves_each_scenario_by_a_mutant_of_its_own_row() -> None:
    chosen = cover(known_kills())
    assert chosen.keys() == known_kills().keys()
    assert all(name in known_kills()[key] for key, name in chosen.items())
