"""The life of a connection: the tables by themselves, and a connection under whatever happens to it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ci import states as page
from fakebrokers.core.frames import Frame
from fakebrokers.core.receive_path import FRAMES_PER_TURN
from fakebrokers.core.session import HangUp
from fakebrokers.core.states import (
    INPUT,
    OUTPUT,
    Event,
    ImpossibleEvent,
    Input,
    InputRow,
    Life,
    Output,
    OutputRow,
)
from fakebrokers.faults import delay, half_open, latency
from tests.core.talk import Talk
from tests.toy import Beat, Stored

Table = Mapping[StrEnum, OutputRow] | Mapping[StrEnum, InputRow]


@pytest.mark.parametrize("table", [OUTPUT, INPUT], ids=["output", "input"])
def test_a_table_is_whole(table: Table) -> None:
    assert list(table) == list(type(next(iter(table))))
    for row in table.values():
        assert not row.next.keys() & row.stays
        assert set(row.next.values()) <= set(table)
    reached = {next(iter(table))}
    for _ in table:
        reached |= {after for state in reached for after in table[state].next.values()}
    assert reached == set(table)


def test_every_pair_of_states_does_what_the_tables_say() -> None:
    for output, input, event in itertools.product(OUTPUT, INPUT, Event):
        life = Life()
        life._enter(output, input)
        rows = OUTPUT[output], INPUT[input]
        known = [
            any(event in each.next or event in each.stays for each in t.values()) for t in (OUTPUT, INPUT)
        ]
        can = [
            not has or event in row.next or event in row.stays for has, row in zip(known, rows, strict=True)
        ]
        if all(can):
            after = (rows[0].next.get(event, output), rows[1].next.get(event, input))
            assert life.on(event) == (after != (output, input))
            assert (life.output, life.input) == after
        else:
            with pytest.raises(ImpossibleEvent, match=event.value):
                life.on(event)
            assert (life.output, life.input) == (output, input)


def test_the_error_names_state_and_event() -> None:
    with pytest.raises(ImpossibleEvent) as raised:
        Life().on(Event.FIN_SENT)
    assert str(raised.value) == "<Event.FIN_SENT: 'FIN sent'> cannot happen with <Output.OPEN: 'open'>"


def test_what_cannot_happen_reaches_the_test() -> None:
    talk = Talk()
    talk.engine.input_ended(talk.link, 0.0)
    talk.link.session.half_closes = True  # type: ignore[misc]
    talk.engine.input_ended(talk.link, 0.0)
    talk.link._life.on(Event.VANISH)
    talk.engine.act(talk.link, 0.0, talk.link._life.on, Event.FIN_SENT)
    assert [type(error) for error in talk.engine.errors] == [ImpossibleEvent]


def test_the_page_shows_the_tables() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.page(text) == text
    for state in (*OUTPUT, *INPUT):
        assert f"| {state} |" in text


class Lives(RuleBasedStateMachine):
    """A connection, and what a broker, a client, a fault and an operator may do to it, in any order."""

    @initialize(late=st.sampled_from(["in", "out"]), seed=st.integers(0, 9))
    def connect(self, late: str, seed: int) -> None:
        kind = {"in": "Put", "out": "Stored"}[late]
        some = delay(1.0, jitter=1.0, kind=kind, probability=0.3)
        self.talk = Talk(some, latency(0.5, kind=kind, nth=2), half_open(kind="Get"), seed=seed)
        self.link, self.wire = self.talk.link, self.talk.wire
        self.session = self.link.session
        self.session.half_closes = True  # type: ignore[misc]
        self.session.closed = self.on_closed  # type: ignore[method-assign]
        self.session.input_ended = self.on_input_ended  # type: ignore[method-assign]
        self.session.handle, self.handle = self.on_frame, self.session.handle  # type: ignore[method-assign]
        self.wire.write = self.on_write  # type: ignore[method-assign]
        self.wire.end_output = self.on_half_end  # type: ignore[method-assign]
        self.wire.hang_up = self.on_end  # type: ignore[method-assign]
        self.got = b""
        self.told: list[str] = []  #: what the session was told of ends
        self.ends: list[HangUp] = []  #: what the transport was told of them
        self.due = 0  #: frames that were said before the broker ended its direction
        self.may_say = self.may_hear = self.client_writes = True
        self.finished = self.half_ended = self.gone = self.vanished = False
        self.cut = False  #: what was said and is held back may be lost

    # what is called

    def on_closed(self, now: float) -> None:
        self.told.append("closed")
        self.link.say(Beat())
        self.link.hang_up()  # as a session does that ends whatever it has

    def on_input_ended(self, now: float) -> None:
        assert self.may_hear
        assert not self.told
        self.told.append("input ended")

    def on_frame(self, frame: Frame, now: float) -> None:
        assert self.may_hear
        assert not self.told
        self.handle(frame, now)
        self.due += self.may_say

    def on_write(self, units: list[Any]) -> None:
        assert not (self.ends or self.half_ended or self.vanished or self.gone)
        self.got += b"".join(units)

    def on_half_end(self) -> None:
        assert not self.ends
        self.half_ended = True

    def on_end(self, how: HangUp) -> None:
        self.ends.append(how)

    # what happens

    def step(self) -> None:
        self.talk.engine.flush(self.talk.now)

    @precondition(lambda self: self.client_writes)
    @rule(count=st.sampled_from([1, 2, FRAMES_PER_TURN + 10]))
    def put(self, count: int) -> None:
        self.talk.engine.receive(self.link, b"put k\n" * count, self.talk.now)
        self.step()

    @precondition(lambda self: self.client_writes)
    @rule()
    def the_host_vanishes(self) -> None:
        """At once, or when what paused reading is over."""
        hears = (
            self.link._life.hears and not self.link._pauses.blocked and not self.link._receive_path.waiting
        )
        assume(hears and self.link.pipe.lanes["out"].idle)
        self.cut = True
        self.talk.engine.receive(self.link, b"get k\n", self.talk.now)
        self.may_say = self.may_hear = False
        self.vanished = self.link._life.output is Output.MUTE
        self.step()

    @rule()
    def the_broker_says(self) -> None:
        self.due += self.may_say
        self.link.say(Stored(("k",)))
        self.step()

    @rule()
    def the_broker_ends_its_direction(self) -> None:
        self.finished, self.may_say = self.may_hear, False
        self.link.end_output()
        self.step()

    @rule(how=st.sampled_from([HangUp.FIN, HangUp.FIN, HangUp.RST]))
    def the_broker_hangs_up(self, how: HangUp) -> None:
        self.may_say = self.may_hear = False
        self.cut = self.cut or how is HangUp.RST
        self.link.hang_up(how)
        self.step()

    @precondition(lambda self: self.client_writes)
    @rule()
    def the_client_sends_fin(self) -> None:
        self.client_writes = False
        self.talk.engine.input_ended(self.link, self.talk.now)
        self.step()

    @rule()
    def the_client_goes(self) -> None:
        """The transport may tell it again, and after an end of ours."""
        self.client_writes = self.may_say = False
        self.cut = self.gone = True
        self.talk.engine.lost(self.link, self.talk.now)
        self.step()

    @rule(how=st.sampled_from(HangUp))
    def an_operator_ends_it(self, how: HangUp) -> None:
        self.cut, self.may_say, self.may_hear = True, False, False
        self.talk.engine.kill(self.link, how, self.talk.now)
        self.step()
        self.vanished = self.link._life.output is Output.MUTE

    @rule(writable=st.booleans())
    def the_buffer(self, writable: bool) -> None:
        self.talk.engine.set_writable(self.link, writable, self.talk.now)
        self.step()

    @rule(reads=st.booleans())
    def the_session_reads(self, reads: bool) -> None:
        (self.link.resume_reading if reads else self.link.stop_reading)()
        self.step()

    @rule(seconds=st.sampled_from([0.0, 0.4, 3.0]))
    def time_passes(self, seconds: float) -> None:
        self.talk.at(self.talk.now + seconds)

    # what holds

    @invariant()
    def nothing_impossible_happens(self) -> None:
        assert self.talk.engine.errors == []

    @invariant()
    def everybody_is_told_once(self) -> None:
        life = self.link._life
        assert self.told in ([], ["input ended"], ["closed"], ["input ended", "closed"])
        assert self.link.alive == ("closed" not in self.told) == ("c1" in self.talk.engine.connections)
        assert (life.output is Output.CLOSED) == (life.input is Input.CLOSED)
        assert life.output is not Output.ENDED, "the step has told it"
        assert len(self.ends) <= 1

    @invariant()
    def nothing_is_pushed_to_nobody(self) -> None:
        assert not self.link.writable or (self.may_hear and not self.gone)

    def teardown(self) -> None:
        if not hasattr(self, "talk"):
            return
        self.the_session_reads(True)
        self.the_buffer(True)
        self.time_passes(1000.0)
        self.everybody_is_told_once()
        assert self.talk.engine.errors == []
        if not self.cut:
            assert self.got.count(b"stored") == self.due
            assert self.ends == ([] if self.may_hear else [HangUp.FIN])
        if self.gone or self.ends:
            assert "closed" in self.told
        if self.finished and not self.cut:
            assert self.half_ended or self.ends


TestLives = Lives.TestCase


def test_a_transport_may_report_the_loss_while_it_is_told_of_the_end() -> None:
    talk = Talk()
    recorded = talk.wire.hang_up

    def hang_up(how: HangUp) -> None:
        recorded(how)
        talk.link.lost(talk.now)

    talk.wire.hang_up = hang_up  # type: ignore[method-assign]
    talk.engine.kill(talk.link, HangUp.RST, talk.now)
    talk.at(talk.now)
    assert (talk.engine.errors, talk.link.alive) == ([], False)


def test_a_transport_says_that_there_is_room_though_it_never_was_full() -> None:
    talk = Talk()
    told: list[float] = []
    talk.link.session.writable = told.append  # type: ignore[method-assign]
    talk.engine.set_writable(talk.link, True, 3.0)
    assert told == [3.0]
