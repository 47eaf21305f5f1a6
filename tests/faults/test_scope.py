"""Where a fault counts: in each connection, for each peer, or in the whole run."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.faults import Fault, Plan, crash, drop, fault, fin, half_open, load_plan, refuse, rst
from fakebrokers.faults.effects import Drop, Rst
from fakebrokers.protocol import protocols
from tests.core.talk import Talk

STORED = b"stored a\n"


@pytest.mark.parametrize("make", [crash, fin, half_open, rst])
@pytest.mark.parametrize("position", [{"nth": 2}, {"first": 1}], ids=str)
def test_the_end_of_a_connection_is_not_repeated_on_the_next_one(make: Any, position: dict[str, int]) -> None:
    talk = Talk(make(kind="Put", pass_frame=False, **position))
    for _ in range(2):
        talk.send(b"put a", b"put a")
        talk.connect()
    assert talk.send(b"put a", b"put a", b"put a") == [STORED * 3]
    assert talk.wire.ended is None
    assert talk.engine.injector.rules[0].fired == 1


def test_a_crash_in_a_fault_with_other_effects_counts_likewise() -> None:
    both = fault(Drop(), Rst(), kind="Stored", nth=1)
    assert (both.scope, drop(nth=1).scope, drop(nth=1, scope="run").scope) == ("run", "connection", "run")


@pytest.mark.parametrize("match", [{"every": 2}, {"probability": 1.0}, {"nth": 1, "scope": "connection"}])
def test_what_is_meant_for_each_connection_still_is(match: dict[str, Any]) -> None:
    talk = Talk(rst(kind="Put", **match))
    for _ in range(3):
        talk.send(b"put a", b"put a")
        assert talk.wire.ended is HangUp.RST
        talk.connect()


def test_the_nth_frame_is_counted_in_each_connection() -> None:
    talk = Talk(drop(role="confirm", nth=1))
    assert talk.send(b"put a", b"put a") == [STORED]
    talk.connect()
    assert talk.send(b"put a", b"put a") == [STORED]


def test_after_s_counts_from_the_fault_where_positions_count_in_the_run() -> None:
    talk = Talk(refuse(kind="Put", nth=1, after_s=1.0))
    talk.send(b"put a")
    talk.now = 1.5
    talk.connect()
    talk.send(b"put a")
    assert [what for what, _, _ in talk.listening.done] == ["refuse"]


def test_plans_of_version_1_keep_their_meaning() -> None:
    row = {"match": {"kind": "Put", "nth": 2}, "effect": {"type": "rst"}}
    old, new = (load_plan({"version": version, "faults": [row]}) for version in (1, 2))
    assert [plan.faults[0].scope for plan in (old, new)] == ["connection", "run"]
    assert new == load_plan({"faults": [row]})
    assert load_plan(old.to_dict()) == old != new
    every = {"version": 1, "faults": [{"match": {"every": 2}, "effect": {"type": "rst"}}]}
    assert load_plan(every).faults[0].match.scope is None


def test_what_acts_on_the_fake_as_a_whole_counts_in_the_run() -> None:
    """By its effects: those that reach for the host are marked as such, in every protocol."""
    marked = {
        str(effect.__struct_config__.tag) for p in protocols() for effect in p.own_effects if effect.per_run
    }
    assert marked >= {
        "stop-node",
        "shut-down",
        "move-leader",
        "delete-stream",
        "break-backend",
        "partition-bus",
    }


def test_a_fault_without_a_scope_is_printed_without_one() -> None:
    plan = Plan(faults=(Fault(match=rst(nth=1).match, effects=(Rst(),)),))
    assert "scope" not in plan.to_toml()
