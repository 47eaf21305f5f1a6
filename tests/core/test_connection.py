"""One peer: what is written when, back pressure both ways, ends."""

from __future__ import annotations

from typing import Any

import pytest

from fakebrokers.core.connection import IN_LANE_LIMIT, OUT_LANE_LIMIT
from fakebrokers.core.frames import Frame
from fakebrokers.core.send_path import WRITE_AT
from fakebrokers.core.session import Codec, HangUp
from fakebrokers.faults import drop, duplicate, hold, latency, rst
from fakebrokers.journal import Tap
from tests.core.talk import Talk
from tests.toy import WIRE, Put, Stored, ToySession, Value


def test_a_step_is_one_write() -> None:
    talk = Talk()
    assert talk.send(b"put a", b"put b", b"get a") == [b"stored a\nstored b\nvalue a\n"]
    assert (talk.link.received_bytes, talk.link.sent_bytes) == (9 + 18, 8 + 26)


def test_bytes_arrive_in_pieces() -> None:
    talk = Talk()
    sizes: list[int] = []
    talk.link.session.unfinished = lambda size, now: sizes.append(size)  # type: ignore[method-assign]
    assert talk.feed(b"pu") == []
    assert talk.feed(b"t a\nput b") == [b"stored a\n"]
    assert talk.feed(b"\n") == [b"stored b\n"]
    assert sizes == [2, 5]


def test_the_brokers_end_comes_behind_what_it_said() -> None:
    talk = Talk()
    assert talk.send(b"bye", b"put a") == [b"bye\n"]
    assert talk.wire.ended is HangUp.FIN
    assert talk.broker.values == {}
    assert talk.journal.records()[-1].note == "fin by broker"
    talk.link.say(Stored(("x",)))
    talk.link.hang_up()
    talk.link.end_now(HangUp.RST, 0.0)
    assert not talk.link.dirty
    assert talk.feed(b"put b\n") == []
    assert talk.journal.records()[-1].note == "fin by broker"


def test_a_connection_that_a_fault_ends_at_once_is_never_opened() -> None:
    talk = Talk(rst(on="accept"), hello=False)
    assert talk.wire.ended is HangUp.RST
    assert not hasattr(talk.link.session, "timer")


def test_what_was_not_written_yet_is_not_written_to_a_client_that_has_gone() -> None:
    talk = Talk()
    talk.link.say(Stored(("x",)))
    talk.engine.lost(talk.link, 0.0)
    talk.engine.flush(0.0)
    assert talk.wire.writes == []


def test_the_session_learns_once_that_the_client_has_gone() -> None:
    talk = Talk()
    closed: list[float] = []
    talk.link.session.closed = closed.append  # type: ignore[method-assign]
    talk.engine.lost(talk.link, 3.0)
    talk.engine.lost(talk.link, 4.0)
    assert closed == [3.0]
    assert not talk.link.alive
    assert talk.engine.connections == {}


def test_back_pressure_of_the_session_is_exact() -> None:
    talk = Talk()
    talk.link.stop_reading()
    assert not talk.wire.reading
    assert talk.send(b"put a") == []
    assert talk.feed(b"put b\nput c\n") == []
    talk.link.resume_reading()
    assert talk.wire.reading
    assert talk.send() == [b"stored a\nstored b\nstored c\n"]


def test_a_session_that_stops_reading_hears_nothing_more_of_the_same_segment() -> None:
    talk = Talk()
    handle = talk.link.session.handle

    def one_at_a_time(frame: Frame, now: float) -> None:
        handle(frame, now)
        talk.link.stop_reading()

    talk.link.session.handle = one_at_a_time  # type: ignore[method-assign]
    assert talk.send(b"put a", b"put b", b"put c") == [b"stored a\n"]
    talk.link.resume_reading()
    assert talk.send() == [b"stored b\n"]


class SlowReader:
    """A transport with a buffer of limited size, as a socket's; the client reads nothing."""

    def __init__(self, talk: Talk, limit: int) -> None:
        self.talk, self.limit, self.held, self.biggest = talk, limit, 0, 0
        talk.wire.write = self.write  # type: ignore[method-assign]

    def write(self, units: list[Any]) -> None:
        self.held += sum(map(len, units))
        self.biggest = max(self.biggest, self.held)
        if self.held > self.limit:
            self.talk.engine.set_writable(self.talk.link, False, self.talk.now)

    def read_all(self) -> None:
        self.held = 0
        self.talk.engine.set_writable(self.talk.link, True, self.talk.now)
        self.talk.engine.flush(self.talk.now)


def test_a_client_that_asks_and_never_reads_does_not_make_the_fake_grow() -> None:
    talk = Talk()
    talk.send(b"put k " + b"x" * 100_000)
    reader = SlowReader(talk, 1_000_000)
    talk.engine.receive(talk.link, b"get k\n" * 5000, 0.0)  # 500 MB of answers to 30 kB of questions
    talk.engine.flush(0.0)
    assert reader.biggest < 1_000_000 + WRITE_AT + 200_000
    assert not talk.wire.reading
    assert not talk.link.writable
    answered = 0
    while talk.link._receive_path.waiting:
        answered += reader.held // 100_000
        reader.read_all()
        talk.at(talk.now)  # the next turn
    assert answered + reader.held // 100_000 == 5000
    assert reader.biggest < 1_000_000 + WRITE_AT + 200_000


def test_a_wire_that_does_not_collect_writes_during_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def writes() -> list[bytes]:
        talk = Talk()
        talk.send(b"put k v")
        return talk.send(*[b"get k"] * 9)

    (whole,) = writes()
    monkeypatch.setattr(WIRE, "write_after", 4)
    pieces = writes()
    assert b"".join(pieces) == whole
    assert [piece.count(b"\n") for piece in pieces] == [4, 4, 1]


def test_the_session_may_push_again_when_the_client_reads() -> None:
    talk = Talk()
    told: list[float] = []
    talk.link.session.writable = told.append  # type: ignore[method-assign]
    talk.engine.set_writable(talk.link, False, 1.0)
    assert not talk.link.writable
    talk.engine.set_writable(talk.link, True, 2.0)
    assert (talk.link.writable, told) == (True, [2.0])


def test_what_faults_hold_back_is_bounded() -> None:
    talk = Talk(hold(role="deliver", name="h"))
    told: list[float] = []
    talk.link.session.writable = told.append  # type: ignore[method-assign]
    talk.send(b"put k " + b"x" * 1_000_000)
    for _ in range(20):
        talk.send(b"get k")
    assert not talk.wire.reading
    assert not talk.link.writable
    assert talk.link.pipe.lanes["out"].size <= OUT_LANE_LIMIT + 1_100_000
    got = b"".join(talk.release("h"))
    assert got.count(b"value") == 5
    assert told
    assert talk.wire.reading or talk.link.pipe.lanes["out"].size > OUT_LANE_LIMIT // 2


def test_what_is_late_on_the_way_in_is_bounded() -> None:
    talk = Talk(latency(5.0, direction="in", role="publish"))
    for _ in range(100):
        talk.send(b"put k " + b"x" * 50_000)
        if not talk.wire.reading:
            break
    assert IN_LANE_LIMIT < talk.link.pipe.lanes["in"].size < IN_LANE_LIMIT + 60_000
    talk.at(5.0)
    assert talk.wire.reading


def test_a_large_step_is_written_in_parts() -> None:
    talk = Talk()
    talk.send(b"put k " + b"x" * 100_000)
    writes = talk.send(*[b"get k"] * 10)
    assert len(writes) > 1
    assert len(b"".join(writes)) == 10 * 100_009


def test_nothing_is_said_to_a_client_that_has_gone_but_the_journal_knows() -> None:
    talk = Talk(latency(1.0, direction="in"))
    talk.now = 1.0
    talk.send(b"put a")
    talk.engine.lost(talk.link, 1.5)
    assert talk.wire.writes == []
    assert ("said", "Stored", ("a",)) in talk.seen(Tap.SAID)


def test_injection_by_hand_passes_all_faults_but_not_the_line() -> None:
    talk = Talk(duplicate(direction="out"), latency(1.0, role="confirm"))
    talk.send(b"put a")
    talk.link.inject(b"raw\n")
    talk.engine.flush(talk.now)
    assert talk._take(-1) == []
    assert talk.at(1.0) == [b"stored a\nstored a\nraw\n"]


@pytest.mark.parametrize("faults", [[], [drop(kind="Value", nth=99)]])
def test_an_error_in_the_session_ends_this_connection_only(faults: list[Any]) -> None:
    talk = Talk(*faults)
    talk.connect()
    talk.send(b"put a boom", b"put b")
    (error,) = talk.engine.errors
    assert isinstance(error, RuntimeError)
    assert error.__notes__ == ["in the fake, on connection c2 ()"]
    assert talk.wires[1].ended is HangUp.RST
    assert talk.send(b"put c", to=0) == [b"stored c\n"]


def test_an_error_of_the_codec_is_kept_as_well() -> None:
    talk = Talk()
    talk.link.codec.encode = lambda frame: 1 / 0  # type: ignore[assignment,method-assign,return-value]
    assert talk.send(b"put a") == []
    assert isinstance(talk.engine.errors[0], ZeroDivisionError)
    assert talk.wire.ended is HangUp.RST


def test_multipart_units_have_the_size_of_their_parts() -> None:
    talk = Talk()
    talk.link.codec.encode = lambda frame: (b"one", b"two")  # type: ignore[assignment,method-assign,return-value]
    talk.wire.write = lambda units: None  # type: ignore[method-assign]
    talk.link.say(Value("a", "b"))
    assert talk.link.sent_bytes == 8 + 6


def test_sessions_know_their_link() -> None:
    talk = Talk()
    assert isinstance(talk.link.session, ToySession)
    assert talk.link.session.link is talk.link
    assert (talk.link.name, talk.link.session.describe()) == ("c1", {"state": "open"})


def test_what_silence_a_client_must_not_bear_stands_in_the_journal() -> None:
    talk = Talk(hello=False)
    talk.link.session.silence_limit_s = 2.5
    talk.send(b"hello me")
    (record,) = talk.journal.select(kind="silence limit")
    assert (record.connection, record.note) == ("c1", "2500 ms")


def test_a_codec_of_whole_units_never_waits_for_the_rest_of_one() -> None:
    class Whole(Codec):
        def feed(self, unit: bytes) -> list[tuple[Frame, int]]:
            return [(Put((unit.decode(),)), len(unit))]

        def encode(self, frame: Frame) -> bytes:
            return b"."

    talk = Talk(rst(on="partial"), hello=False)
    talk.link.codec = Whole()
    talk.feed(b"a")
    assert talk.wire.ended is None


# ends of one direction


def test_the_brokers_direction_ends_and_the_clients_goes_on() -> None:
    talk = Talk(latency(1.0, direction="out", kind="Stored"))
    talk.send(b"put a")
    talk.link.end_output()
    assert talk.at(0.5) == []
    assert talk.at(1.0) == [b"stored a\n", b"<fin>"]
    assert talk.send(b"put b") == []
    assert talk.at(3.0) == []
    assert set(talk.broker.values) == {"a", "b"}
    assert talk.journal.select(kind="Stored")[-1].tap is Tap.SAID
    assert [record.note for record in talk.journal.select(kind="half-closed")] == ["by broker"]
    assert talk.wire.ended is None
    talk.link.hang_up()
    talk.at(3.0)
    assert talk.wire.ended is HangUp.FIN


def test_the_end_of_the_clients_direction_comes_behind_what_faults_made_late() -> None:
    talk = Talk(latency(1.0, direction="in", kind="Put"))
    ended: list[float] = []
    talk.link.session.half_closes = True  # type: ignore[misc]
    talk.link.session.input_ended = ended.append  # type: ignore[method-assign]
    talk.send(b"put a")
    assert talk.engine.input_ended(talk.link, 0.0)
    talk.engine.flush(0.0)
    assert ended == []
    talk.at(2.0)
    assert ended == [1.0]
    assert talk.broker.values == {"a": ""}


def test_without_half_closes_the_clients_end_is_that_of_the_connection() -> None:
    talk = Talk()
    assert not talk.engine.input_ended(talk.link, 0.0)
    assert not talk.journal.select(kind="half-closed")
