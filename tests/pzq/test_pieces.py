"""Messages as bytes on their way, and clients in memory that take those."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fakebrokers.core.session import HangUp
from fakebrokers.core.virtual import run
from fakebrokers.faults.build import rst
from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import Fault
from fakebrokers.pzq.memory import connect
from fakebrokers.pzq.pieces import Piece, borders, bytes_of, frame_of, pieces, whole
from fakebrokers.pzq.server import PZQ
from tests.pzq.zmtp import message

PARTS = (b"id", b"", b"x" * 300)


def test_a_message_is_framed_as_by_others() -> None:
    assert bytes_of([PARTS]) == message("3.0", *PARTS)
    assert bytes_of([PARTS, b"bare"]) == message("3.0", *PARTS) + message("3.0", b"bare")


@pytest.mark.parametrize(
    ("size", "head"), [(0, b"\x01\x00"), (255, b"\x01\xff"), (256, b"\x03" + bytes(6) + b"\1\0")]
)
def test_the_length_of_a_part(size: int, head: bytes) -> None:
    assert frame_of(b"y" * size, more=True) == head + b"y" * size


def test_pieces_are_the_whole_together() -> None:
    assert borders(PARTS) == [4, 6]
    cut = pieces(PARTS, (6, 0, 5000, 4, 6))
    assert [len(piece) for piece in cut] == [4, 2, 309]
    assert bytes_of(cut) == bytes_of([PARTS])
    assert [piece.is_last for piece in cut] == [False, False, True]


def test_who_takes_messages_gets_what_is_whole() -> None:
    assert whole([(b"a",), b"bare", *pieces(PARTS, (4,)), pieces((b"torn", b""), (3,))[0]]) == [
        (b"a",),
        (b"bare",),
        PARTS,
    ]


class Bytes:
    """A client's line: what its reads give, and None for the end of a connection."""

    def __init__(self) -> None:
        self.reads: list[bytes | None] = []

    def feed(self, data: bytes) -> None:
        self.reads.append(data)

    def lost(self) -> None:
        self.reads.append(None)


class Torn(Effect, frozen=True, tag="torn for a test"):
    """The first bytes of an answer come, then the connection is reset."""

    def apply(self, passage: Passage) -> None:
        passage.pass_raw(pieces(passage.data, (7,))[0])
        passage.hang_up(HangUp.RST)


def test_a_line_gets_what_came_of_a_message_and_then_its_end() -> None:
    async def work() -> None:
        pzq = PZQ(memory=True)
        pzq.start()
        line, told = Bytes(), list[Any]()
        by_bytes = connect(pzq.urls["receive"], "DEALER", told.append, line=line)
        by_messages = connect(pzq.urls["receive"], "DEALER", told.append)
        for socket in (by_bytes, by_messages):
            socket.send(b"n1", b"", b"body")
        await asyncio.sleep(0.01)
        assert line.reads == [message("3.0", b"n1", b"1", b"")]
        assert told == [(b"n1", b"1", b"")]
        pzq.faults.add(Fault(match=Match(direction="out", role="confirm"), effects=(Torn(),)))
        for socket in (by_bytes, by_messages):
            socket.send(b"n2", b"", b"body")
        await asyncio.sleep(0.01)
        assert line.reads[1:] == [message("3.0", b"n2", b"1", b"")[:7], None]
        assert len(told) == 1
        by_bytes.close()
        by_messages.close()
        pzq.stop()
        pzq.check()

    run(work())


def test_what_is_written_at_a_time_is_one_read() -> None:
    async def work() -> None:
        pzq = PZQ(memory=True)
        pzq.start()
        line = Bytes()
        socket = connect(pzq.urls["receive"], "DEALER", lambda _: None, line=line)
        socket.send(b"n1", b"", b"body")
        await asyncio.sleep(0.01)
        both = [(b"n2", b"1", b""), pieces((b"n3", b"1", b""), (3,))[0]]
        socket.write(both)
        await asyncio.sleep(0)
        assert line.reads[1:] == [bytes_of(both)]
        assert isinstance(both[1], Piece)
        pzq.stop()

    run(work())


def test_a_connection_that_ends_as_it_comes_leaves_nothing() -> None:
    async def work() -> None:
        pzq = PZQ(memory=True)
        pzq.faults.add(rst(on="accept"))
        pzq.start()
        socket = connect(pzq.urls["send"], "ROUTER", lambda _: None)
        await asyncio.sleep(0.5)
        pzq.faults.clear()
        await asyncio.sleep(0.5)
        assert len(pzq.engine.connections) == 1
        socket.close()
        pzq.stop()
        pzq.check()

    run(work())
