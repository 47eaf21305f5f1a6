"""The journal in memory: order, limits, secrets, who watches."""

from __future__ import annotations

import threading

import msgspec

from fakebrokers.core.frames import Frame, FrameSpec, Malformed, Role
from fakebrokers.core.wire import frames_of
from fakebrokers.journal import Journal, Record, Tap
from tests.core.talk import Talk
from tests.marked import PASSWORD, shown_in
from tests.toy import FRAMES, WIRE, Get, Hello, Put, Refused, Stored, Value


def filled(count: int, **options: int) -> Journal:
    journal = Journal(FRAMES, **options)
    for number in range(count):
        journal.add(10.0 + number, "c1", Tap.IN, Get(str(number)), 6)
    return journal


def test_fakes_of_a_protocol_share_what_their_journals_ask_of_frames() -> None:
    known = frames_of([WIRE])
    assert frames_of([WIRE]) is known
    assert known.careful is frames_of([WIRE]).careful


def test_records_have_what_the_frame_table_says() -> None:
    journal = Journal(FRAMES)
    journal.state(100.0, "c1", "accepted", "peer")
    journal.add(100.5, "c1", Tap.IN, Put(("a", "b"), "x"), 9)
    journal.add(101.0, "c1", Tap.OUT, Refused("k", 5), 12, "fault")
    state, put, refused = journal
    assert (state.seq, state.at, state.tap, state.kind, state.note) == (1, 0.0, Tap.STATE, "accepted", "peer")
    assert (put.seq, put.at, put.kind, put.role, put.keys, put.size) == (
        2,
        0.5,
        "Put",
        "publish",
        ("a", "b"),
        9,
    )
    assert (refused.status, refused.fault, refused.keys) == (5, "fault", ("k",))
    assert (put.tap.direction, refused.tap.direction, state.tap.direction) == ("in", "out", "")


def test_the_oldest_go_first_and_numbers_stay() -> None:
    journal = filled(10, limit=4)
    assert [record.seq for record in journal] == [7, 8, 9, 10]
    assert (len(journal), journal.dropped, journal.last_seq) == (4, 6, 10)
    assert [record.seq for record in journal.records(since=8)] == [9, 10]
    assert [record.seq for record in journal.records(since=2)] == [7, 8, 9, 10]
    assert journal.records(since=99) == []


def test_what_was_forgotten_on_purpose_was_not_given_up() -> None:
    journal = filled(10, limit=4)
    journal.forget()
    assert (len(journal), journal.dropped, journal.last_seq) == (0, 0, 10)
    for number in range(5):
        journal.add(20.0, "c1", Tap.IN, Get(str(number)), 6)
    assert (len(journal), journal.dropped, journal.last_seq) == (4, 1, 15)


def test_select() -> None:
    journal = filled(2)
    journal.add(20.0, "c2", Tap.SAID, Stored(("a",)), 9)
    assert [r.kind for r in journal.select(role="confirm")] == ["Stored"]
    assert [r.kind for r in journal.select(tap=Tap.OUT)] == ["Stored"]
    assert [r.keys for r in journal.select(kind="Get", since=1)] == [("1",)]
    assert journal.select(connection="c3") == []


def test_large_bodies_are_left_out_but_not_their_keys() -> None:
    journal = Journal(FRAMES, body_limit=10)
    journal.add(0.0, "c1", Tap.IN, Put(("a", "b"), "x" * 50), 60)
    journal.add(0.0, "c1", Tap.IN, Value("k", "short"), 9)
    journal.add(0.0, "c1", Tap.HEARD, Put(("c",), "x" * 50), 0)  # size not known at this tap
    large, small, heard = journal
    assert (large.frame, large.keys, large.size) == (None, ("a", "b"), 60)
    assert isinstance(small.frame, Value)
    assert (heard.frame, heard.keys) == (None, ("c",))


class Login(Frame, frozen=True):
    name: str
    token: bytes | None
    options: dict[str, str]
    body: str = ""


def test_credentials_never_reach_the_journal() -> None:
    spec = FrameSpec(Role.HANDSHAKE, secret=("name", "token", "options"), bulk=("body",))
    journal = Journal({Login: spec})
    journal.add(0.0, "c1", Tap.IN, Login(PASSWORD, PASSWORD.encode(), {"password": PASSWORD}), 10)
    journal.add(0.0, "c1", Tap.IN, Login("", None, {}), 10)
    journal.add(0.0, "c1", Tap.IN, Malformed(b"PASS %b" % PASSWORD.encode(), "expected a frame"), 10)
    assert not shown_in(repr(journal.records()) + journal.excerpt())
    first, empty, malformed = (record.frame for record in journal)
    assert first == Login("***", b"***", {"password": "***"})
    assert empty == Login("", None, {})
    assert malformed == Malformed(b"***", "expected a frame")


def test_the_frame_itself_is_not_changed() -> None:
    talk = Talk(hello=False)
    heard = []
    handle = talk.link.session.handle
    talk.link.session.handle = lambda frame, now: (heard.append(frame), handle(frame, now))[1]  # type: ignore[method-assign]
    talk.send(b"hello sesame")
    assert heard == [Hello("sesame")]
    assert "sesame" not in talk.journal.excerpt() + repr(talk.journal.records())


def test_watchers() -> None:
    journal = filled(1)
    seen: list[Record] = []
    stop = journal.watch(seen.append)
    journal.add(0.0, "c1", Tap.IN, Get("x"), 6)
    journal.state(0.0, "c1", "closed")
    stop()
    stop()
    journal.add(0.0, "c1", Tap.IN, Get("y"), 6)
    assert [(r.seq, r.kind) for r in seen] == [(2, "Get"), (3, "closed")]
    assert seen == journal.records()[1:3]


def test_lines_for_people() -> None:
    talk = Talk()
    talk.send(b"put a,b,c", b"what")
    text = talk.journal.excerpt(5)
    assert len(text.splitlines()) == 5
    assert "-> Put" in text
    assert "keys a..c (3) 10 B" in text
    assert "expected one of hello" in text


def test_reading_while_another_thread_writes() -> None:
    journal = Journal(FRAMES, limit=500)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            journal.add(0.0, "c1", Tap.IN, Get("x"), 6)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(200):
            seqs = [record.seq for record in journal.records()]
            assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) if seqs else True
    finally:
        stop.set()
        thread.join()


def test_records_are_values() -> None:
    record = filled(1).records()[0]
    assert msgspec.structs.replace(record, seq=9).seq == 9
