"""Each anomaly in the smallest history that shows it, and the nearest history that does not."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.rules.anomalies import CHECKS, check
from conformance.rules.anomalies.anomaly import NAMES, allowed_names
from conformance.rules.anomalies.history import fates
from fakebrokers.journal import Tap
from fakebrokers.journal.record import State
from fakebrokers.journal.rows import OpRow

_spec = importlib.util.spec_from_file_location("histories", Path(__file__).parent / "histories.py")
assert _spec is not None and _spec.loader is not None
h: Any = importlib.util.module_from_spec(_spec)
sys.modules["histories"] = h
_spec.loader.exec_module(h)


def found(story: Any, *, ended: bool = True) -> list[tuple[str, str]]:
    return [(anomaly.name, anomaly.value) for anomaly in check(story.log(ended=ended))]


def test_there_is_a_checker_for_every_name() -> None:
    assert tuple(CHECKS) == NAMES


def test_a_clean_history_is_clean() -> None:
    story = h.Story(contract="exactly-once ordered")
    story.subscribe()
    for n in range(5):
        story.frame(h.Publish((n,)), Tap.IN)
        story.frame(h.Confirm((n,)), Tap.OUT)
        story.publish(f"v{n}", wire_key=str(n))
        story.deliver(f"v{n}", n * 10)
    story.drain()
    assert found(story) == []


# lost-write


def test_acknowledged_and_read_past_is_lost() -> None:
    story = h.Story(contract="ordered")
    story.subscribe()
    story.publish("a")
    story.publish("b")
    story.deliver("b")
    assert found(story) == [("lost-write", "a")]


@pytest.mark.parametrize(
    "why", ["unknown", "late reader", "sent before the acknowledgement", "no order promised"]
)
def test_what_is_not_proven_lost_is_not_lost(why: str) -> None:
    story = h.Story(contract="" if why == "no order promised" else "ordered")
    if why != "late reader":
        story.subscribe()
    if why == "sent before the acknowledgement":
        story.publish("b", None)
    story.publish("a", "info" if why == "unknown" else "ok")
    if why == "late reader":
        story.subscribe()
    if why != "sent before the acknowledgement":
        story.publish("b")
    story.deliver("b")
    assert "lost-write" not in dict(found(story))


def test_a_message_that_was_sent_meanwhile_proves_nothing() -> None:
    story = h.Story(contract="ordered")
    story.subscribe()
    story.run.op(story.tick(), "p1", 91, "publish", "invoke", key="q", value="a")
    story.publish("b", by="p2")
    story.run.op(story.tick(), "p1", 91, "publish", "ok", key="q", value="a")
    story.deliver("b")
    assert found(story) == []


def test_offsets_on_both_sides_prove_it_too() -> None:
    story = h.Story()
    story.publish("a", offset=5)
    story.deliver("x", 4)
    assert found(story) == []
    story.deliver("y", 6)
    assert ("lost-write", "a") in found(story)


def test_a_drained_queue_without_order_has_lost_it() -> None:
    story = h.Story(contract="at-least-once")
    story.publish("a")
    story.drain()
    assert found(story) == [("lost-write", "a"), ("unseen", "a")]


# unseen


def test_only_a_drain_after_the_acknowledgement_tells_that_nobody_saw_it() -> None:
    story = h.Story(contract="ordered")
    story.drain()
    story.publish("a")
    assert found(story) == []
    story.drain()
    assert found(story) == [("unseen", "a")]
    story.deliver("a")
    assert found(story) == []


def test_a_drained_log_says_nothing_of_another() -> None:
    story = h.Story(contract="at-least-once")
    story.publish("a")
    story.drain(key="another")
    assert found(story) == []


# duplicate


def test_two_offsets_are_a_duplicate_and_one_offset_twice_is_not() -> None:
    story = h.Story()
    story.publish("a")
    story.deliver("a", 1, by="c1")
    story.deliver("a", 1, by="c2")
    assert found(story) == []
    story.deliver("a", 2, by="c2")
    assert found(story) == [("duplicate", "a")]


def test_without_offsets_more_deliveries_than_attempts_are() -> None:
    story = h.Story()
    story.publish("a", "info")
    story.publish("a")
    story.deliver("a")
    story.deliver("a")
    assert found(story) == []
    story.deliver("a")
    assert found(story) == [("duplicate", "a")]


# order


@pytest.mark.parametrize(
    ("offsets", "anomaly"),
    [((0, 1, 2), None), ((0, 2), "poll-skip"), ((1, 0), "nonmonotonic-poll"), ((0, 0), "nonmonotonic-poll")],
)
def test_steps_of_a_reader(offsets: tuple[int, ...], anomaly: str | None) -> None:
    story = h.Story()
    for offset in range(3):
        story.deliver(f"v{offset}", offset * 100, by="other")
    for offset in offsets:
        story.deliver(f"v{offset}", offset * 100)
    assert [name for name, _ in found(story)] == ([anomaly] if anomaly else [])


@pytest.mark.parametrize("what", ["subscribe", "reconnected", "other log"])
def test_who_starts_again_may_jump(what: str) -> None:
    story = h.Story()
    for offset in range(3):
        story.deliver(f"v{offset}", offset, by="other")
    story.deliver("v2", 2)
    if what == "subscribe":
        story.subscribe()
    elif what == "reconnected":
        story.run.event(story.tick(), "c1", "reconnected")
    else:
        story.subscribe(key="another")
    story.deliver("v0", 0)
    assert [name for name, _ in found(story)] == (["nonmonotonic-poll"] if what == "other log" else [])


# G1a


@pytest.mark.parametrize(
    ("ends", "anomaly"),
    [(("fail",), True), (("info",), False), (("fail", "ok"), False), (("fail", "info"), False)],
)
def test_a_failed_message_must_not_arrive(ends: tuple[str, ...], anomaly: bool) -> None:
    story = h.Story()
    for end in ends:
        story.publish("a", end)
    story.deliver("a")
    assert found(story) == ([("G1a", "a")] if anomaly else [])


# phantom-confirm


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("tap", "anomaly"), [(Tap.OUT, False), (Tap.SENT, False), (Tap.SAID, True)])
def test_a_confirm_that_never_left_confirms_nothing(tap: Tap, anomaly: bool, named: bool) -> None:
    story = h.Story()
    story.frame(h.Publish((1, 2)), Tap.IN)
    story.frame(h.Confirm((1,)), Tap.OUT)
    story.frame(h.Confirm((2,)), tap)
    story.publish("a", wire_key="1" if named else None)
    story.publish("b", wire_key="2" if named else None)
    assert found(story) == ([("phantom-confirm", "2" if named else "")] if anomaly else [])


def test_one_number_may_stand_for_a_batch_of_messages() -> None:
    story = h.Story()
    story.frame(h.Publish((1,)), Tap.IN)
    for name in ("a", "b", "c"):
        story.publish(name, wire_key="1")
    assert found(story) == [("phantom-confirm", "1")]
    story.frame(h.Confirm((1,)), Tap.OUT)
    assert found(story) == []


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("apart", ["connections", "scopes", "peers"])
def test_a_confirm_counts_only_where_it_belongs(apart: str, named: bool) -> None:
    """Two use the same number; one of them is confirmed twice, the other never."""
    story = h.Story(contract="at-least-once")
    places = [("c1", 0), ("c1", 1)] if apart == "scopes" else [("c1", 0), ("c2", 0)]
    if apart == "peers":
        story.state("c1", State.PEER, "n1")
        story.state("c2", State.PEER, "n2")
    for connection, publisher in places:
        story.frame(h.Publish((0,), publisher), Tap.IN, connection)
    for _ in range(2):
        story.frame(h.Confirm((0,), places[0][1]), Tap.OUT, places[0][0])
    for value in "ab":
        story.publish(value, wire_key="0" if named else None)
    (anomaly,) = check(story.log())
    assert (anomaly.name, anomaly.detail) == ("phantom-confirm", "2 acknowledged, 1 sent")


def test_an_answer_may_leave_on_another_connection_of_the_peer() -> None:
    story = h.Story(contract="at-least-once")
    for connection in ("c1", "c2"):
        story.state(connection, State.PEER, "n1")
    story.frame(h.Publish((0,)), Tap.IN, "c1")
    story.frame(h.Confirm((0,)), Tap.OUT, "c2")
    story.publish("a", wire_key="0")
    assert found(story) == []


def test_a_message_sent_again_on_a_new_connection_is_confirmed_there() -> None:
    story = h.Story(contract="at-least-once")
    for connection in ("c1", "c2"):
        story.frame(h.Publish((0,)), Tap.IN, connection)
    story.frame(h.Confirm((0,)), Tap.OUT, "c2")
    story.publish("a", wire_key="0")
    assert found(story) == []


@pytest.mark.parametrize("code", [0, 5])
def test_a_refusal_in_a_batch_of_confirms_is_no_confirm(code: int) -> None:
    story = h.Story(contract="at-least-once")
    story.frame(h.Publish(("g1", "g2")), Tap.IN)
    story.frame(h.Answers(("g1", "g2"), (0, code), (0, 0)), Tap.OUT)
    for value, key in (("a", "g1"), ("b", "g2")):
        story.publish(value, wire_key=key)
    assert found(story) == ([("phantom-confirm", "g2")] if code else [])


def test_keys_that_never_stood_on_the_wire_accuse_nobody() -> None:
    story = h.Story()
    story.frame(h.Publish((1,)), Tap.IN)
    story.frame(h.Confirm((1,)), Tap.OUT)
    story.publish("a", wire_key="own-name")
    assert found(story) == []


def test_without_a_wire_journal_nothing_is_said() -> None:
    story = h.Story()
    story.publish("a")
    assert found(story) == []


# missed-heartbeat-ignored


@pytest.mark.parametrize(
    "reaction", ["none", "fin", "close", "event", "too late", "none needed", "no limit", "lag"]
)
def test_silence_must_be_noticed(reaction: str) -> None:
    story = h.Story(heartbeat_limit_ms=None if reaction == "no limit" else 1000.0)
    story.frame(h.Hello(), Tap.OUT)
    story.tick(60.0)  # a slow handshake is something else
    story.frame(h.Hello(), Tap.OUT)
    story.frame(h.Beat(), Tap.OUT)
    story.tick(1.0)
    match reaction:
        case "fin":
            story.journal.state(story.tick(), "c1", "closed", "closed by client")
        case "close":
            story.frame(h.Close(), Tap.IN)
        case "event":
            story.run.event(story.tick(), "any", "connection_lost")
        case "lag":
            story.run.metric(story.tick(), "loop_lag_ms", 2000.0)
        case "none needed":
            story.frame(h.Beat(), Tap.OUT)
    story.tick(1.6)
    if reaction == "too late":
        story.frame(h.Close(), Tap.IN)
    story.run.metric(story.tick(), "loop_lag_ms", 0.0)
    names = [name for name, _ in found(story)]
    assert names == (["missed-heartbeat-ignored"] if reaction in {"none", "too late"} else [])


# stuck-request


@pytest.mark.parametrize(
    ("end", "anomaly"), [(None, True), ("hang", True), ("timeout", False), ("refused", False)]
)
def test_every_request_ends_somehow(end: str | None, anomaly: bool) -> None:
    story = h.Story()
    story.run.op(story.tick(), "p1", 1, "connect", "invoke")
    if end is not None:
        story.run.op(story.tick(), "p1", 1, "connect", "info", error=end)
    assert [name for name, _ in found(story)] == (["stuck-request"] if anomaly else [])


def test_a_run_that_was_broken_off_has_no_end_at_which_to_be_stuck() -> None:
    story = h.Story()
    story.publish("a", None)
    assert found(story, ended=False) == []


# contracts


def test_what_a_contract_allows_is_found_and_marked() -> None:
    story = h.Story(contract="at-least-once")
    story.publish("a")
    for _ in range(2):
        story.deliver("a")
    (anomaly,) = check(story.log())
    assert (anomaly.name, anomaly.allowed) == ("duplicate", True)


def test_contracts() -> None:
    assert allowed_names("") == set()
    assert allowed_names("exactly-once ordered") == set()
    assert allowed_names("at-most-once ordered") == {"lost-write", "unseen"}
    assert allowed_names("at-least-once") == {"duplicate", "nonmonotonic-poll", "poll-skip"}


@pytest.mark.parametrize(("offsets", "highest"), [((-7, -5, None), -5), ((0, -5), 0), ((None,), None)])
def test_the_offset_of_a_confirm_is_the_highest_whatever_its_sign(
    offsets: tuple[int | None, ...], highest: int | None
) -> None:
    """No reader makes negative ones, but whoever does is not told of an offset 0 that nobody gave."""
    ops = [
        OpRow("r", seq, seq, "p", seq, "publish", "ok", "q", "a", offset)
        for seq, offset in enumerate(offsets, 1)
    ]
    assert fates(ops)["q", "a"].acked_offset == highest
