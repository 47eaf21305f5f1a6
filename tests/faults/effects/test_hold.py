"""Frames that wait: hold, silent and stall."""

from __future__ import annotations

from fakebrokers.faults import (
    hold,
    silent,
    stall,
)
from fakebrokers.journal import Tap
from tests.core.talk import Talk

# hold and release


def test_hold_and_release() -> None:
    talk = Talk(hold(role="confirm", nth=1, name="h"))
    assert talk.send(b"put a", b"put b") == [b"stored b\n"]
    assert talk.at(100.0) == []
    assert talk.release("h") == [b"stored a\n"]


def test_hold_with_everything_behind() -> None:
    talk = Talk(hold(behind=True, role="confirm", nth=1, name="h"))
    assert talk.send(b"put a", b"get a") == []
    assert talk.release("h") == [b"stored a\nvalue a\n"]
    assert talk.send(b"put b") == [b"stored b\n"]


def test_hold_for_a_while() -> None:
    talk = Talk(hold(for_s=0.3, role="confirm", nth=1))
    assert talk.send(b"put a") == []
    assert talk.at(0.3) == [b"stored a\n"]


def test_hold_all_but_beats() -> None:
    talk = Talk(hold(direction="out", spare=("heartbeat",), name="h"))
    talk.send(b"put a", b"get a")
    talk.now = 1.0
    talk.engine.handle_timers(1.0)
    talk.engine.flush(1.0)
    assert talk.wire.writes == [b"beat\n"]
    talk.wire.writes.clear()
    assert talk.release("h") == [b"welcome\nstored a\nvalue a\n"]


def test_hold_in() -> None:
    talk = Talk(hold(kind="Put", nth=1, name="h"))
    assert talk.send(b"put a 1", b"put a 2") == [b"stored a\n"]
    assert talk.release("h") == [b"stored a\n"]
    assert talk.broker.values == {"a": "1"}


# silent, stall


def test_silent() -> None:
    talk = Talk(silent(role="confirm", nth=1, name="s", spare=("deliver",)))
    assert talk.send(b"put a x", b"get a", b"put b") == [b"value a x\n"]
    assert talk.broker.values == {"a": "x", "b": ""}
    assert talk.release("s") == []
    assert talk.send(b"put c") == [b"stored c\n"]


def test_silent_from_a_clients_frame_on_and_for_a_while() -> None:
    talk = Talk(silent(for_s=0.5, kind="Put", nth=1))
    assert talk.send(b"put a") == []
    assert talk.broker.values == {"a": ""}
    talk.now = 0.6
    assert talk.send(b"get a") == [b"value a\n"]


def test_silent_behind_the_frame() -> None:
    talk = Talk(silent(pass_frame=True, role="confirm", nth=1))
    assert talk.send(b"put a", b"put b") == [b"stored a\n"]


def test_stall_leaves_even_what_came_in_the_same_segment() -> None:
    talk = Talk(stall(kind="Put", nth=1, name="s"))
    assert talk.send(b"put a", b"put b") == [b"stored a\n"]
    assert not talk.wire.reading
    assert talk.seen(Tap.RECEIVED)[-1] == ("received", "Put", ("a",))
    assert talk.release("s") == [b"stored b\n"]
    assert talk.wire.reading


def test_stall_for_a_while_and_others_release() -> None:
    talk = Talk(stall(for_s=1.0, kind="Put", nth=1), hold(role="deliver", name="other"))
    talk.send(b"put a")
    talk.release("other")
    assert not talk.wire.reading
    talk.at(1.0)
    assert talk.wire.reading
