"""What a run promises once its faults are considered."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.rules.anomalies.anomaly import allowed_names
from conformance.suite.contract import contract, promise
from conformance.suite.load import requirement
from conformance.suite.scenario import Scenario
from fakebrokers.core.frames import Frame, FrameSpec, FrameTable, Items, KeyType, Role
from fakebrokers.journal import Journal, Tap

NOTHING = "at-least-once ordered"


class Deliver(Frame, frozen=True):
    offset: int


class Confirm(Frame, frozen=True):
    id: int


class Beat(Frame, frozen=True):
    pass


class Close(Frame, frozen=True):
    pass


class Piece(Frame, frozen=True):
    pass


class ByCode(Items):
    mixed = True
    roles = (Role.REJECT,)

    def count(self, frame: Any) -> int:
        return len(frame.ids)

    def keys(self, frame: Any) -> Any:
        return frame.ids

    def role(self, frame: Any, index: int) -> Role | None:
        return Role.REJECT if frame.codes[index] else None

    def status(self, frame: Any, index: int) -> int:
        return int(frame.codes[index])


class Answers(Frame, frozen=True):
    ids: tuple[str, ...]
    codes: tuple[int, ...]


FRAMES: FrameTable = {
    Deliver: FrameSpec(Role.DELIVER, "offset"),
    Confirm: FrameSpec(Role.CONFIRM, "id"),
    Beat: FrameSpec(Role.HEARTBEAT),
    Close: FrameSpec(Role.CLOSE),
    Piece: FrameSpec(Role.EVENT),
    Answers: FrameSpec(Role.CONFIRM, "ids", ByCode(), keys=KeyType.TEXT),
}


def of(
    *entries: tuple[Any, ...],
    resumed_s: float | None = None,
    limit: int = 100,
    protocol: str = "rabbitmq-stream",
    **more: Any,
) -> str:
    """The contract of a run with these records: (tap, frame, fault) or (state, note, fault)."""
    journal = Journal(FRAMES, limit=limit)
    for number, (what, frame, *fault) in enumerate(entries):
        if isinstance(what, str):
            journal.state(float(number), "c1", what, frame, *fault)
        else:
            journal.add(float(number), "c1", what, frame, 10, *fault)
    item = Scenario(requirement=requirement("RMQS-3.06"), protocol=protocol, script=nothing, **more)
    return contract(item, journal, resumed_s=resumed_s)


async def nothing(*_: object) -> None:
    """A script."""


def test_where_nothing_happens_the_protocol_keeps_its_word() -> None:
    assert of((Tap.OUT, Deliver(0)), (Tap.OUT, Confirm(1))) == NOTHING == promise("rabbitmq-stream")
    assert promise("pzq") == "at-least-once"


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([(Tap.SAID, Deliver(0), "f"), (Tap.SENT, Deliver(0), "f")], id="late"),
        pytest.param([(Tap.RECEIVED, Piece(), "f"), (Tap.HEARD, Piece(), "f")], id="late, inbound"),
        pytest.param([(Tap.SAID, Confirm(1), "f")], id="confirm lost"),
        pytest.param([(Tap.SAID, Confirm(1), "f"), (Tap.SENT, Confirm(1), "f")] * 2, id="confirm late"),
        pytest.param([(Tap.SAID, Beat(), "f")], id="heartbeat lost"),
        pytest.param([(Tap.SENT, Close(), "by hand"), ("fin", "")], id="close by hand"),
        pytest.param([(Tap.IN, Close()), ("fin", ""), ("closed", "fin by broker")], id="closed as asked"),
        pytest.param([("closed", "closed by client")], id="closed by client"),
    ],
)
def test_what_changes_no_message_excuses_nothing(entries: list[tuple[Any, ...]]) -> None:
    assert of(*entries) == NOTHING


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([(Tap.SAID, Deliver(0), "f")], id="lost"),
        pytest.param([(Tap.SENT, Deliver(0), "f")], id="made up"),
        pytest.param([(Tap.SAID, Deliver(0), "f"), (Tap.SENT, Deliver(1), "f")], id="rewritten"),
        pytest.param(
            [(Tap.SAID, Deliver(0), "f"), (Tap.OUT, Deliver(1)), (Tap.SENT, Deliver(0), "f")], id="overtaken"
        ),
        pytest.param([(Tap.SAID, Deliver(0), "f"), *[(Tap.SENT, Deliver(0), "f")] * 2], id="doubled"),
        pytest.param([(Tap.SAID, Deliver(0), "f"), ("bytes", "9 B in place of Deliver", "f")], id="corrupt"),
        pytest.param([("rst", "")], id="cut"),
        pytest.param([("fin", "")], id="ended unasked"),
        pytest.param([("crash", "state kept")], id="crash"),
        pytest.param([("clock", "+9 s", "f")], id="clock"),
    ],
)
def test_what_a_fault_does_to_messages_is_not_the_clients(entries: list[tuple[Any, ...]]) -> None:
    assert of(*entries) == "at-least-once at-most-once"


def test_who_goes_on_by_itself_is_not_excused_by_a_cut() -> None:
    assert of(("rst", ""), ("crash", "state kept"), resumed_s=9.0) == NOTHING
    assert of(("crash", "state lost"), resumed_s=9.0) == "at-least-once at-most-once"


def test_who_goes_on_may_not_find_that_a_later_connection_is_silent() -> None:
    assert of(("half-open", ""), resumed_s=1.0) == NOTHING
    assert of((Tap.OUT, Confirm(1)), ("half-open", ""), resumed_s=0.5) == "at-least-once at-most-once"


@pytest.mark.parametrize("fault", ["f", "by hand"])
def test_an_answer_that_was_never_meant_lies(fault: str) -> None:
    found = of((Tap.SAID, Confirm(1), fault), (Tap.SENT, Confirm(2), fault))
    assert found == "at-least-once false-answers ordered"
    assert {"G1a", "lost-write"} <= allowed_names(found)
    assert "phantom-confirm" not in allowed_names(found)


@pytest.mark.parametrize(("said", "lies"), [((0, 5), False), ((0, 0), True)])
def test_a_batch_of_answers_is_judged_item_by_item(said: tuple[int, ...], lies: bool) -> None:
    meant = Answers(("a", "b"), said)
    found = of((Tap.SAID, meant, "f"), (Tap.SENT, Answers(("b",), (5,)), "f"))
    assert ("false-answers" in found) == lies


def test_what_is_sent_by_hand_may_be_a_confirm() -> None:
    for entry in ((Tap.SENT, Piece(), "by hand"), ("bytes", "9 B", "by hand")):
        assert "phantom-confirm" in allowed_names(of(entry))


def test_an_answer_with_other_bytes_may_be_any_confirm() -> None:
    changed = of((Tap.SAID, Confirm(1), "f"), ("bytes", "9 B in place of Confirm", "f"))
    assert "phantom-confirm" in allowed_names(changed)
    assert {"G1a", "lost-write"} <= allowed_names(changed)
    assert "phantom-confirm" not in allowed_names(of((Tap.SAID, Confirm(1), "f")))


@pytest.mark.parametrize(
    ("next_position", "lies"),
    [
        pytest.param([(Tap.OUT, Piece())], True, id="an error"),
        pytest.param([(Tap.OUT, Confirm(2)), (Tap.SENT, Confirm(1), "f")], True, id="overtaken"),
        pytest.param([(Tap.SENT, Confirm(1), "f"), (Tap.OUT, Piece())], False, id="late"),
        pytest.param([(Tap.OUT, Beat()), ("fin", "")], False, id="nothing"),
    ],
)
def test_answers_told_apart_by_order_move_up_behind_a_lost_one(
    next_position: list[tuple[Any, ...]], lies: bool
) -> None:
    lost = (Tap.SAID, Confirm(1), "f")
    assert ("false-answers" in of(lost, *next_position, protocol="narconi")) == lies
    assert "false-answers" not in of(lost, *next_position)


def test_what_nobody_saw_excuses() -> None:
    assert of((Tap.OUT, Beat()), server={"proxied": True}) == "at-least-once at-most-once"
    assert of((Tap.OUT, Beat()), sockets=True) == "at-least-once at-most-once by-hand"
    assert of(("second fake", "")) == "at-least-once at-most-once by-hand"
    assert of(*[(Tap.OUT, Beat())] * 3, limit=2) == "at-least-once at-most-once"
