"""The pipe as a whole: same seed, same decisions, whatever the segments; life cycle of rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakebrokers.core.timers import Timer, Timers
from fakebrokers.errors import PlanError
from fakebrokers.faults import (
    Fault,
    delay,
    drop,
    duplicate,
    fault,
    hold,
    latency,
    rewrite,
    silent,
    slice_,
    stall,
)
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.effects import (
    Corrupt,
    Delay,
    Drop,
    Duplicate,
    Extend,
    Fin,
    HalfOpen,
    Hold,
    Inject,
    Reorder,
    Reply,
    Rst,
    Silent,
    Slice,
    Stall,
    Truncate,
)
from fakebrokers.faults.lane import Lane
from fakebrokers.journal import Tap
from tests.core.talk import Talk
from tests.toy import WIRE, Put, Stored

# whatever the TCP segments

LINES = st.lists(
    st.sampled_from([b"put a x", b"put b,c y", b"put d,e,f z", b"get a", b"get zz", b"beat", b"what", b""]),
    min_size=1,
    max_size=12,
)
POSITIONS: list[dict[str, Any]] = [
    {"nth": 2},
    {"first": 2},
    {"every": 2},
    {"probability": 0.5},
    {"probability": 0.3, "unit": "item"},
    {"every": 2, "unit": "item"},
    {"where": {"key": ["a"]}},
    {"byte": 30},
]
TARGETS: list[dict[str, Any]] = [
    {"role": "publish"},
    {"role": "confirm"},
    {"kind": "Value"},
    {"direction": "in"},
    {"direction": "out"},
    {},
]
ACTS: list[tuple[Effect, ...]] = [
    (Drop(),),
    (Duplicate(times=2),),
    (Corrupt(),),
    (Truncate(),),
    (Extend(hex="21"),),
    (Inject(hex="2a0a", place="before"),),
    (Reorder(window=2, order="shuffle"),),
    (Hold(),),
    (Silent(),),
    (Stall(),),
    (Delay(seconds=1.0, jitter=0.5),),
    (Duplicate(), Corrupt(), Fin()),
    (Rst(pass_frame=False),),
    (HalfOpen(),),
]
ONE_WAY: list[tuple[Effect, ...]] = [(Reply(code=3),), (Slice(up_to=3, gap_s=0),)]


@st.composite
def rules(draw: st.DrawFn) -> Fault:
    target, position = draw(st.sampled_from(TARGETS)), draw(st.sampled_from(POSITIONS))
    if "direction" in target or not target:
        return fault(*draw(st.sampled_from(ACTS)), **{**position, "where": {}}, **target)
    if draw(st.booleans()) and target.get("role") == "publish":
        return fault(*ONE_WAY[0], **position, **target)
    if draw(st.booleans()) and target.get("role") == "confirm":
        return fault(*ONE_WAY[1], **position, **target)
    where = {} if target.get("kind") == "Value" else position.get("where", {})
    return fault(*draw(st.sampled_from(ACTS)), **{**position, "where": where}, **target)


def outcome(plan: list[Fault], seed: int, segments: list[bytes]) -> dict[str, Any]:
    """What was decided: each tap's frames with their faults, and every byte that the client got."""
    talk = Talk(*plan, seed=seed)
    got = list(talk.wire.writes)
    for segment in segments:
        got += talk.feed(segment)
    got += talk.at(0.9)
    taps = {
        tap.label: [(r.kind, r.keys, r.fault) for r in talk.journal if r.tap & tap]
        for tap in (Tap.RECEIVED, Tap.HEARD, Tap.SAID, Tap.SENT)
    }
    fired = {rule.name: rule.fired for rule in talk.engine.injector.rules}
    errors = [str(error) for error in talk.engine.errors]
    return {**taps, "fired": fired, "bytes": b"".join(got), "end": talk.wire.ended, "errors": errors}


@settings(max_examples=300, deadline=None)
@given(st.lists(rules(), min_size=1, max_size=4), st.integers(0, 99), LINES, st.data())
def test_same_seed_same_decisions_whatever_the_segments(
    plan: list[Fault], seed: int, lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(stream) - 1)))))
    segments = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    whole = outcome(plan, seed, [stream])
    assert outcome(plan, seed, segments) == whole
    assert outcome(plan, seed, [stream[i : i + 1] for i in range(len(stream))]) == whole


# taps


def test_a_frame_that_no_fault_touches_is_one_record() -> None:
    talk = Talk(drop(role="deliver"))
    talk.send(b"put a")
    assert talk.seen(Tap.IN, Tap.OUT)[-2:] == [("in", "Put", ("a",)), ("out", "Stored", ("a",))]


def test_a_sliced_frame_is_sent_once_its_last_byte_has_left() -> None:
    talk = Talk(slice_(5, gap_s=0.1, role="confirm", name="cut"))
    talk.send(b"put a")
    assert talk.seen(Tap.SENT)[-1:] == [("out", "Welcome", ())]
    talk.at(0.1)
    sent = [r for r in talk.records("Stored") if r.tap is Tap.SENT]
    assert [(r.size, r.fault) for r in sent] == [(9, "cut")]


def test_bytes_in_place_of_a_frame_are_not_the_frame() -> None:
    talk = Talk(fault(Truncate(keep=4), role="confirm", name="half"))
    talk.send(b"put a")
    assert [r.tap for r in talk.records("Stored")] == [Tap.SAID]
    (record,) = talk.records("bytes")
    assert (record.note, record.fault) == ("4 B in place of Stored", "half")


def test_what_was_late_on_the_way_in_arrives_although_the_client_has_closed() -> None:
    talk = Talk(latency(1.0, direction="in"), hello=False)
    talk.send(b"put a x")
    talk.engine.lost(talk.link, 0.5)
    assert talk.broker.values == {"a": "x"}
    talk = Talk(hold(direction="in"), hello=False)
    talk.send(b"put a x")
    talk.engine.lost(talk.link, 0.5)
    assert talk.broker.values == {}


def test_mistakes_that_show_only_at_a_frame_reach_the_test() -> None:
    talk = Talk(rewrite({"keys.inner": 1}, role="confirm"))
    assert talk.send(b"put a") == []
    (error,) = talk.engine.errors
    assert isinstance(error, PlanError)
    assert "rewrite of Stored.keys.inner" in str(error)


# rules come and go


def test_rules_that_are_added_and_removed_while_frames_flow() -> None:
    talk = Talk()
    injector = talk.engine.injector
    assert talk.send(b"put a") == [b"stored a\n"]
    (name,) = injector.add([drop(role="confirm")], talk.now)
    assert talk.send(b"put a") == []
    injector.remove(name)
    assert talk.send(b"put a") == [b"stored a\n"]
    injector.add([drop(role="confirm")], talk.now)
    injector.clear()
    assert talk.send(b"put a") == [b"stored a\n"]
    assert len(injector.ever) == 2
    with pytest.raises(PlanError, match=r"expected a fault that is at work \(none\), got 'gone'"):
        injector.find("gone")


def test_all_or_none() -> None:
    talk = Talk()
    with pytest.raises(PlanError):
        talk.engine.injector.add([drop(role="confirm"), drop(kind="Nothing")])
    assert talk.engine.injector.rules == []


def test_what_was_remembered_of_a_connection_goes_with_it() -> None:
    talk = Talk(drop(role="confirm", probability=0.5))
    (rule,) = talk.engine.injector.rules
    for _ in range(5):
        talk.send(b"put a")
        talk.engine.lost(talk.link, talk.now)
        talk.connect()
    assert len(rule._states) <= 1


def test_silence_hides_what_is_said_but_other_rules_still_count_it() -> None:
    def lost(*faults: Fault) -> list[bool]:
        talk = Talk(*faults)
        talk.send(b"put a", b"put b", b"put c")
        talk.release("quiet") if len(faults) > 1 else None
        return [b"stored d\n" not in talk.send(b"put d")]

    third = drop(role="confirm", nth=4)
    assert lost(third) == lost(silent(role="publish", nth=1, name="quiet"), third) == [True]


def test_everything_that_a_fault_holds_is_released_by_its_name_only() -> None:
    talk = Talk(hold(kind="Stored", name="a"), hold(kind="Value", name="b"), stall(kind="Beat", name="c"))
    talk.send(b"put k", b"get k", b"beat", b"put l")
    assert talk.release("b") == [b"value k\n"]
    assert talk.release("a") == [b"stored k\n"]
    assert talk.release("c") == []
    assert talk.release("a") == [b"stored l\n"]


def test_what_was_late_leaves_when_its_fault_is_released() -> None:
    talk = Talk(latency(60.0, role="confirm", name="late"), delay(60.0, kind="Value", name="later"))
    assert talk.send(b"put a", b"get a", b"put b") == []
    assert talk.release("late") == [b"stored a\nstored b\n"]
    assert talk.release("later") == [b"value a\n"]
    talk.engine.injector.clear()
    assert talk.send(b"put c") == [b"stored c\n"]  # nor does what comes now wait


def test_what_one_rule_copies_another_acts_on_once_where_once_is_enough() -> None:
    talk = Talk(duplicate(role="confirm"), fault(Inject(hex="2a"), role="confirm"))
    assert talk.send(b"put a") == [b"stored a\n*stored a\n"]


# byte wires only


def test_effects_on_bytes_are_refused_where_a_library_owns_the_wire() -> None:
    from fakebrokers.core.wire import Wire
    from fakebrokers.faults.injector import Injector
    from tests.toy import FRAMES

    injector = Injector([Wire("toy", FRAMES, stream=False)])
    for act in (Truncate(), Corrupt(), Slice(size=1), Extend(hex="00"), Inject(hex="00")):
        with pytest.raises(PlanError, match="a library owns"):
            injector.add([fault(act)])
    injector.add([delay(1.0), fault(Inject(kind="Stored", fields={"keys": ["a"]}))])


def test_a_frame_made_from_plain_values() -> None:
    assert WIRE.build("Put", {"keys": ["a"]}, "x") == Put(("a",))
    with pytest.raises(PlanError, match=r"x\.fields\.keys: .*: 3"):
        WIRE.build("Stored", {"keys": 3}, "x")
    assert isinstance(WIRE.build("Stored", {"keys": []}, "x"), Stored)


def test_an_idle_lane_costs_nothing_and_says_so() -> None:
    made = []

    def new_timer() -> Timer:
        made.append(Timers().new(lambda now: None))
        return made[-1]

    lane = Lane(new_timer)
    assert lane.idle
    assert lane.take(1.0) == []
    lane.clear()
    assert made == []
    assert lane.timer.due == float("inf")
