"""Which frame a fault is for: positions, moments, predicates, items, scopes, chance."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakebrokers.core.session import HangUp
from fakebrokers.errors import PlanError
from fakebrokers.faults import (
    Fault,
    Plan,
    drop,
    duplicate,
    fault,
    fin,
    hold,
    latency,
    rst,
    silent,
    slice_,
    sweep,
)
from fakebrokers.faults.effects import Inject, Silent
from fakebrokers.faults.match import fields_fit
from fakebrokers.journal import Tap
from tests.core.talk import Talk
from tests.eventually import PATIENCE_S
from tests.toy import Put, Refused

PUTS = [b"put %d" % number for number in range(1, 13)]


def lost(talk: Talk) -> list[int]:
    """Which of the twelve confirms were not sent."""
    got = b"".join(talk.send(*PUTS)).split()
    return [number for number in range(1, 13) if b"%d" % number not in got]


@pytest.mark.parametrize(
    ("match", "numbers"),
    [
        ({"nth": 3}, [3]),
        ({"first": 3}, [1, 2, 3]),
        ({"every": 5}, [5, 10]),
        ({"every": 2, "first": 5}, [2, 4]),
        ({"probability": 0.0}, []),
        ({"probability": 1.0}, list(range(1, 13))),
        ({"where": {"key": ["7"]}}, [7]),
        ({"kind": "Stored"}, list(range(1, 13))),
        ({"kind": "Value"}, []),
        ({"connection": "c1"}, list(range(1, 13))),
        ({"connection": "c2"}, []),
        ({"direction": "out", "nth": 4}, [3]),  # the welcome was the first
    ],
)
def test_positions(match: Mapping[str, Any], numbers: list[int]) -> None:
    role = {} if "direction" in match or "kind" in match else {"role": "confirm"}
    assert lost(Talk(drop(**role, **match))) == numbers


def test_sweep_finds_every_position_once() -> None:
    """The same fault at n = 1, 2, 3 ... until it fires no more."""
    found = []
    for broken in sweep(drop(role="confirm", name="x")):
        talk = Talk(broken)
        found.append(lost(talk))
        if not talk.engine.injector.find("x").fired:
            break
    assert found == [*([number] for number in range(1, 13)), []]


def test_after_some_time() -> None:
    talk = Talk(drop(role="confirm", after_s=5.0, nth=1))
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.now = 5.0
    assert talk.send(b"put b", b"put c") == [b"stored c\n"]


def test_after_some_time_of_the_run_counts_from_its_start() -> None:
    talk = Talk(drop(role="confirm", after_s=5.0, scope="run"))
    talk.now = 1000.0
    talk.engine.start(1000.0)
    talk.now = 1004.0
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.now = 1005.0
    assert talk.send(b"put a") == []


def test_scope_run_counts_over_connections() -> None:
    talk = Talk(drop(role="confirm", nth=2, scope="run"))
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.connect()
    assert talk.send(b"put b") == []
    own = Talk(drop(role="confirm", nth=2))
    own.send(b"put a")
    own.connect()
    assert own.send(b"put b") == [b"stored b\n"]


# predicates


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ({"code": 5}, True),
        ({"code": {"eq": 5}}, True),
        ({"code": {"ne": 5}}, False),
        ({"code": {"ge": 5, "lt": 6}}, True),
        ({"code": {"gt": 5}}, False),
        ({"code": {"le": 4}}, False),
        ({"code": {"in": [1, 5]}}, True),
        ({"code": "5"}, False),
        ({"code": {"lt": "x"}}, False),
        ({"code": 5, "key": "k"}, True),
        ({"code": 5, "key": "other"}, False),
        ({"nothing": None}, False),
    ],
)
def test_where(where: Mapping[str, Any], fits: bool) -> None:
    assert fields_fit(Refused("name", 5), where, {"key": "k"}) is fits


def test_where_of_lists_bytes_and_inner_fields() -> None:
    assert fields_fit(Put(("a", "b")), {"keys": ["a", "b"]}, {})
    assert fields_fit(Put(("a", "b")), {"keys": {"in": [["a", "b"]]}}, {})

    class Box:
        def __init__(self) -> None:
            self.data = b"text"
            self.pairs = {"x": 1}

    assert fields_fit(Box(), {"data": "text", "pairs.x": 1}, {})  # type: ignore[arg-type]
    assert not fields_fit(Box(), {"pairs.y": 1}, {})  # type: ignore[arg-type]
    assert fields_fit(Put(("a", "b")), {"keys.1": "b"}, {})
    assert not fields_fit(Put(("a", "b")), {"keys.2": "b"}, {})


def test_where_must_name_a_field_that_there_is() -> None:
    with pytest.raises(
        PlanError, match=r"where\.kye: expected one of key, keys; got 'kye' .did you mean 'key'"
    ):
        Talk(drop(role="confirm", where={"kye": 1}))


# items


def test_one_item_of_a_batch() -> None:
    talk = Talk(drop(role="confirm", nth=3, unit="item"))
    assert talk.send(b"put a,b,c,d") == [b"stored a,b,d\n"]
    assert talk.send(b"put a,b,c,d") == [b"stored a,b,c,d\n"]


def test_items_that_something_comes_between_become_frames() -> None:
    talk = Talk(duplicate(role="confirm", unit="item", where={"key": "b"}))
    assert talk.send(b"put a,b,c,d") == [b"stored a\nstored b\nstored b\nstored c,d\n"]


def test_held_items_leave_the_others_together() -> None:
    talk = Talk(hold(role="confirm", unit="item", every=2, name="h"))
    assert talk.send(b"put a,b,c,d") == [b"stored a,c\n"]
    assert talk.release("h") == [b"stored b\nstored d\n"]


def test_items_of_a_clients_batch() -> None:
    talk = Talk(drop(role="publish", unit="item", first=2))
    assert talk.send(b"put a,b,c") == [b"stored c\n"]


def test_two_rules_choose_their_items_for_themselves() -> None:
    both = Talk(
        drop(role="confirm", unit="item", nth=2, name="drop"),
        duplicate(role="confirm", unit="item", nth=3, name="dup"),
    )
    assert both.send(b"put a,b,c,d") == [b"stored a\nstored c\nstored c\nstored d\n"]


# moments


def test_garbage_for_the_first_connection_only() -> None:
    garbage = fault(Inject(hex="7f00"), Silent(), on="accept", nth=1, scope="run")
    talk = Talk(garbage, hello=False)
    assert b"".join(talk.wires[0].writes) == b""  # taken by connect
    first = Talk(garbage, hello=False)
    assert first.send(b"hello me") == []
    assert first.journal.records()[2].kind == "bytes"
    first.connect(hello=False)
    assert first.send(b"hello me") == [b"welcome\n"]


def test_rst_at_accept_never_opens_the_session() -> None:
    talk = Talk(rst(on="accept"), hello=False)
    assert talk.wire.ended is HangUp.RST
    assert talk.engine.next_deadline() == math.inf
    assert not talk.engine.connections


def test_ready() -> None:
    talk = Talk(silent(on="ready"), hello=False)
    assert talk.send(b"hello me", b"put a") == [b"welcome\n"]


def test_hold_at_a_moment_holds_that_direction() -> None:
    talk = Talk(hold(on="ready", direction="in", name="h"), hello=False)
    assert talk.send(b"hello me", b"put a") == [b"welcome\n"]
    assert talk.release("h") == [b"stored a\n"]


def test_before_a_clients_frame_has_been_read_whole() -> None:
    talk = Talk(rst(on="partial"))
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.feed(b"put b ")
    assert talk.wire.ended is HangUp.RST
    assert talk.broker.values == {"a": ""}


def test_idle_comes_once_for_each_time_of_silence() -> None:
    talk = Talk(fault(Inject(hex="2e"), on="idle", after_s=0.4))
    assert talk.at(0.39) == []
    assert talk.at(0.4) == [b"."]
    assert talk.at(0.9) == []
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.at(0.95)
    assert [r.at for r in talk.records("fault")] == [0.4]
    talk.at(1.5)  # the beat at 1.0 ended the silence, and another began
    assert [round(r.at, 3) for r in talk.records("fault")] == [0.4, 1.4]


def test_a_while_counts_from_when_the_connection_was_accepted() -> None:
    talk = Talk(drop(role="confirm", after_s=1.0))
    talk.now = 5.0  # nothing has moved since the first connection came
    talk.connect()
    talk.at(5.9)
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.at(6.0)
    assert talk.send(b"put b") == []


def test_two_waits_for_the_same_silence() -> None:
    first = fault(Inject(hex="2e"), on="idle", after_s=0.2)
    second = fault(Inject(hex="2d"), on="idle", after_s=0.4)
    talk = Talk(first, second)
    assert talk.at(0.3) == [b"."]
    assert talk.at(0.5) == [b"-"]


def test_a_fault_that_is_added_while_nothing_moves_sees_the_silence() -> None:
    talk = Talk()
    assert talk.at(0.1) == []
    talk.engine.injector.add([fault(Inject(hex="2e"), on="idle", after_s=0.4)], talk.now)
    assert talk.at(0.39) == []
    assert talk.at(0.5) == [b"."]


def test_a_fault_that_is_taken_out_while_nothing_moves_sees_none() -> None:
    talk = Talk(fault(Inject(hex="2e"), on="idle", after_s=0.4, name="dot"))
    assert talk.at(0.3) == []
    talk.engine.injector.remove("dot")
    assert talk.at(0.9) == []


def test_a_plan_that_changes_counts_for_kinds_that_came_before() -> None:
    talk = Talk(drop(kind="Value"))
    assert talk.send(b"put a") == [b"stored a\n"]
    talk.engine.injector.add([drop(role="confirm", name="lost")], talk.now)
    assert talk.send(b"put b") == []
    talk.engine.injector.remove("lost")
    assert talk.send(b"put c") == [b"stored c\n"]


def test_moments_are_no_frames() -> None:
    with pytest.raises(PlanError, match=r"match\.role: expected none"):
        fin(on="accept", role="confirm")
    with pytest.raises(PlanError, match=r'"drop" needs a frame, but on = "accept" is a moment'):
        drop(on="accept")
    with pytest.raises(PlanError, match="expected seconds above 0"):
        fin(on="idle")


# offsets


def test_the_frame_that_contains_a_byte() -> None:
    for byte in range(8, 35):  # behind the welcome; each confirm has 9 bytes
        talk = Talk(drop(direction="out", byte=byte))
        got = talk.send(b"put a", b"put b", b"put c")[0].split()
        assert b"abc"[(byte - 8) // 9 : (byte - 8) // 9 + 1] not in got
        assert len(got) == 4
    talk = Talk(drop(direction="in", byte=9 + 6 + 2))
    assert talk.send(b"put a", b"put b", b"put c") == [b"stored a\nstored c\n"]


# chance


def decisions(*faults: Fault, seed: int = 1, connections: int = 1) -> list[list[int]]:
    talk = Talk(*faults, seed=seed)
    results = [lost(talk)]
    for _ in range(connections - 1):
        talk.connect()
        results.append(lost(talk))
    return results


COIN = drop(role="confirm", probability=0.5, name="coin")


def test_chance_is_that_of_the_seed() -> None:
    assert decisions(COIN, seed=4) == decisions(COIN, seed=4)
    assert len({str(decisions(COIN, seed=seed)) for seed in range(10)}) > 5


@pytest.mark.parametrize(
    "others",
    [
        [drop(role="confirm", probability=0.3, name="a"), slice_(up_to=3, gap_s=0, kind="Stored", name="b")],
        [duplicate(role="publish", name="a"), duplicate(role="confirm", name="b")],
        [latency(0.0, jitter=0.0, role="confirm", name="a")],
    ],
)
def test_chance_does_not_depend_on_other_rules(others: list[Fault]) -> None:
    def fired(*faults: Fault) -> list[tuple[str, ...]]:
        talk = Talk(*faults, seed=7)
        talk.send(*PUTS)
        talk.at(1.0)
        said = [r for r in talk.records("Stored") if r.tap & Tap.SAID]
        keys = {r.keys: "coin" in r.fault.split(",") for r in said}
        return [key for key, hit in keys.items() if hit]

    alone = fired(COIN)
    assert alone
    if "publish" in str(others[0]):
        assert fired(COIN, others[1]) == fired(others[1], COIN) == alone
    else:
        assert fired(COIN, *others) == fired(*others, COIN) == alone


def test_each_connection_has_chances_of_its_own() -> None:
    first, second = decisions(COIN, connections=2)
    assert first != second
    assert decisions(COIN)[0] == first


def test_each_rule_has_chances_of_its_own() -> None:
    other = drop(role="confirm", probability=0.5, name="other coin")
    assert decisions(COIN) != decisions(other)


def test_one_throw_for_a_whole_connection() -> None:
    per_link = drop(role="confirm", probability=0.5, per="connection")
    results = decisions(per_link, connections=20)
    assert all(len(each) in (0, 12) for each in results)
    assert 3 < sum(bool(each) for each in results) < 17


def test_chance_does_not_depend_on_the_hash_seed() -> None:
    code = "from tests.faults.test_match import COIN, decisions; print(decisions(COIN, seed=3))"
    root = Path(__file__).parents[2]
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout
        for seed in (1, 2)
    }
    assert printed == {f"{decisions(COIN, seed=3)}\n"}


def test_leaving_a_fault_out_of_a_plan_with_names_changes_no_other() -> None:
    plan = Plan(
        seed=1,
        faults=(duplicate(role="confirm", probability=0.5), drop(role="confirm", probability=0.5)),
    ).named()
    assert [each.name for each in plan.faults] == ["fault 1", "fault 2"]

    def drops(*faults: Fault) -> list[bool]:
        talk = Talk(*faults, seed=plan.seed)
        talk.send(*PUTS)
        said = [r for r in talk.records("Stored") if r.tap & Tap.SAID]
        return ["fault 2" in r.fault for r in said]

    assert drops(*plan.faults) == drops(plan.faults[1])
    assert any(drops(*plan.faults))


@given(st.dictionaries(st.sampled_from(["key", "code", "x.y"]), st.integers() | st.text()))
def test_where_never_raises(where: dict[str, Any]) -> None:
    fields_fit(Refused("a", 1), where, {})
