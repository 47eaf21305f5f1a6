"""All connections of a fake: names, timers, crashes, the clock."""

from __future__ import annotations

import gc
import math
import weakref

import pytest

from fakebrokers.core.action import Action
from fakebrokers.core.engine import Clock
from fakebrokers.core.session import HangUp
from fakebrokers.faults import crash, delay, fault, latency, shift_clock
from fakebrokers.faults.effects import Crash
from tests.core.talk import Talk
from tests.toy import Put, Stored


def test_connections_are_named_in_the_order_in_which_they_come() -> None:
    talk = Talk()
    talk.connect()
    talk.engine.lost(talk.links[0], 0.0)
    talk.connect()
    assert list(talk.engine.connections) == ["c2", "c3"]
    assert talk.engine.accepted == 3


def test_timers_of_sessions() -> None:
    talk = Talk()
    assert talk.engine.next_deadline() == 1.0
    assert talk.at(0.9) == []
    talk.engine.handle_timers(1.0)
    talk.engine.flush(1.0)
    assert talk.wire.writes == [b"beat\n"]
    assert talk.engine.next_deadline() == 2.0


def test_a_client_that_says_nothing() -> None:
    talk = Talk(hello=False)
    talk.at(9.9)
    assert talk.wire.ended is None
    talk.at(10.0)
    assert talk.wire.ended is HangUp.FIN
    assert talk.engine.next_deadline() == math.inf


def test_timers_do_not_pile_up() -> None:
    talk = Talk(latency(0.0001, role="confirm"), hello=False)
    for step in range(2000):
        talk.now = step * 0.001
        talk.send(b"put a")
        talk.at(talk.now + 0.0005)
    assert len(talk.engine.timers) <= 3


def test_timers_of_connections_that_have_gone_do_nothing() -> None:
    talk = Talk()
    talk.engine.lost(talk.link, 0.5)
    talk.engine.handle_timers(10.0)
    talk.engine.flush(10.0)
    assert talk.wire.writes == []
    assert talk.engine.next_deadline() == math.inf


def test_what_an_end_makes_the_broker_say_to_others_is_said_at_that_time() -> None:
    talk = Talk(delay(0.5, kind="Stored"))
    talk.connect()
    leaving, staying = talk.links
    leaving.session.closed = lambda now: staying.say(Stored(("x",)))  # type: ignore[method-assign]
    talk.engine.lost(leaving, 0.4)
    talk.engine.flush(0.4)
    assert [record.at for record in talk.records("Stored")] == [0.4]
    assert talk.at(0.89) == []
    assert talk.at(0.9) == [b"stored x\n"]


def test_nothing_holds_on_to_a_connection_that_has_gone() -> None:
    """Neither its timers, some of which are far away, nor the list of those to be flushed."""
    talk = Talk(latency(5.0, role="confirm"))
    talk.send(b"put a")
    gone = weakref.ref(talk.links.pop())
    connection = gone()
    assert connection is not None
    talk.engine.lost(connection, 0.5)
    talk.engine.flush(0.5)
    del connection
    gc.collect()
    assert gone() is None


def test_timers_of_the_broker() -> None:
    talk = Talk()
    called: list[float] = []
    talk.broker.timers.new(called.append).set(0.3)
    assert talk.engine.next_deadline() == 0.3
    talk.at(0.5)
    assert called == [0.3]


def test_the_broker_is_told_when_a_step_ends_before_anything_is_written() -> None:
    talk = Talk()
    told: list[tuple[float, int]] = []
    talk.broker.step_ended = lambda now: told.append((now, len(talk.wire.writes)))  # type: ignore[method-assign]
    talk.now = 1.5
    assert talk.send(b"put a") == [b"stored a\n"]
    assert told[0] == (1.5, 0)


def test_what_the_broker_says_at_the_end_of_a_step_leaves_with_it() -> None:
    talk = Talk()
    said: list[float] = []

    def act(now: float) -> None:
        if not said:
            said.append(now)
            talk.link.session.handle(Put(("b",)), now)

    talk.broker.step_ended = act  # type: ignore[method-assign]
    assert talk.send(b"put a") == [b"stored a\nstored b\n"]


def test_an_error_at_a_timer_of_the_broker_is_kept() -> None:
    talk = Talk()
    talk.broker.timers.new(lambda now: 1 / 0).set(0.3)
    later: list[float] = []
    talk.broker.timers.new(later.append).set(0.3)
    talk.at(0.5)
    assert [type(error) for error in talk.engine.errors] == [ZeroDivisionError]
    assert later == [0.3]


def test_one_connections_answer_on_another_leaves_in_the_same_step() -> None:
    talk = Talk()
    talk.connect()
    first, second = talk.links
    handle = second.session.handle
    second.session.handle = lambda frame, now: (handle(frame, now), first.session.handle(frame, now))[0]  # type: ignore[method-assign]
    assert talk.send(b"put a") == [b"stored a\n"]
    assert talk.wires[0].writes == [b"stored a\n"]


def test_crash_by_hand() -> None:
    talk = Talk()
    talk.connect()
    talk.send(b"put a")
    talk.engine.crash(HangUp.RST, False, 1.0)
    assert talk.broker.values == {"a": ""}  # at the end of the step, not in the middle of it
    talk.engine.flush(1.0)
    assert talk.broker.values == {}
    assert [wire.ended for wire in talk.wires] == [HangUp.RST] * 2


def test_a_crash_lets_the_session_finish_its_step() -> None:
    """The session must not be told of its end while it is still at work."""
    talk = Talk(crash(kind="Stored", keep_state=False))
    order: list[str] = []
    session = talk.link.session
    handle, closed = session.handle, session.closed
    session.handle = lambda frame, now: (order.append("in"), handle(frame, now), order.append("out"))[1]  # type: ignore[method-assign]
    session.closed = lambda now: (order.append("closed"), closed(now))[1]  # type: ignore[method-assign]
    talk.send(b"put a")
    assert order == ["in", "out", "closed"]
    assert talk.broker.values == {}


def test_crash_at_a_moment() -> None:
    talk = Talk(fault(Crash(restart_s=None), on="ready", nth=1, scope="run"), hello=False)
    talk.send(b"hello me")
    assert talk.wire.ended is HangUp.RST
    assert talk.listening.done == [("down", None, "fault 1")]


def test_clock() -> None:
    clock = Clock(1000.0)
    assert clock.wall(5.0) == 1005.0
    talk = Talk(shift_clock(60.0, role="publish", every=1))
    talk.send(b"put a", b"put b")
    assert talk.engine.clock.wall(0.0) == 120.0
    assert [r.note for r in talk.records("clock")] == ["+60.0 s", "+60.0 s"]


def test_kill_passes_all_faults() -> None:
    talk = Talk(latency(9.0, direction="out"))
    talk.engine.kill(talk.link, HangUp.RST, 0.0)
    talk.engine.flush(0.0)
    assert talk.wire.ended is HangUp.RST


def test_an_action_that_nobody_can_carry_out_is_told() -> None:
    class Wish(Action, frozen=True): ...

    with pytest.raises(NotImplementedError, match=r"Wish has no perform\(host, fault, connection\)"):
        Talk().engine.perform(Wish(), "a fault", "c1")
