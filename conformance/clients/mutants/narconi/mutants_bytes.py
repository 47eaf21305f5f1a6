"""Defects in what happens below the messages (catalogue section NET-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError, Wire
from conformance.clients.reference.narconi.channels import Publishers, Publishing
from conformance.clients.reference.narconi.http import Response, ResponseReader
from conformance.clients.reference.narconi.publisher import Done, Publisher
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.narconi.websocket import BadFrame, Message, MessageReader, encode
from fakebrokers.narconi.websocket import BINARY, TEXT

PLAIN_MAX = 65_536  #: the largest body of a server that nobody has configured otherwise

# segments


@mutant("segments-end-frames", tag="wire", breaks=["X1"])
class SegmentsEndFrames(MessageReader):
    """Throws away what a segment holds of a frame that goes on in the next one."""

    def feed(self, data: bytes) -> list[Message]:
        found = super().feed(data)
        self._buffer.clear()
        return found


@mutant("confirms-run-together", tag="wire", breaks=["N7", "X1"])
class ConfirmsRunTogether(MessageReader):
    """Takes all confirms of a segment for one."""

    def feed(self, data: bytes) -> list[Message]:
        found = super().feed(data)
        formers = [None, *found]
        return [one for one, former in zip(found, formers, strict=False) if one.payload or one != former]


@mutant("answer-in-one-segment", tag="wire", breaks=["X1"])
class AnswerInOneSegment(ResponseReader):
    """Takes the first segment for the whole head of an HTTP response."""

    def feed(self, data: bytes) -> Response | None:
        if self._head is None and b"\r\n\r\n" not in data:
            raise ClientError("protocol", f"no head of a response: {data!r:.40}")
        return super().feed(data)


# time


@mutant("resends-soon", tag="data", breaks=["X1"])
class ResendsSoon(Publisher):
    """Sends again what has no confirm after a quarter of a second."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        super().publish(metadata, body, done)
        asyncio.get_running_loop().call_later(0.25, self._again, metadata, body, done)

    def _again(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        if done in self.pending:
            super().publish(metadata, body, lambda error: None)


@mutant("slow-frames-are-lost", tag="life-cycle", breaks=["X1"])
class NarconiSlowFramesAreLost(Socket):
    """Gives a connection up when a frame takes longer than three seconds."""

    began: float | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        now = asyncio.get_running_loop().time()
        if not self._reader.partial:
            self.began = None
        elif self.began is None:
            self.began = now
        elif now - self.began > 3.0:
            self.give_up("a frame takes too long")


@mutant("half-the-patience", tag="life-cycle", breaks=["X3"])
class HalfThePatience(Socket):
    """Gives the server only half of the keep-alive time for a pong."""

    def pong_wait_s(self) -> float:
        return super().pong_wait_s() / 2


@mutant("overdue-confirm-awaited", tag="life-cycle", breaks=["X3", "X8"])
class OverdueConfirmAwaited(Publishers):
    """Goes on with a WebSocket on which a confirm is overdue."""

    def overdue(self, publishing: Publishing) -> None:
        pass


@mutant("overflow-is-stored", tag="data", breaks=["X4"])
class OverflowIsStored(Publisher):
    """Throws messages away while 32 are unconfirmed, and reports them as stored."""

    def publish(self, metadata: Mapping[str, Any], body: bytes, done: Done) -> None:
        if len(self.pending) < 32:
            super().publish(metadata, body, done)
        else:
            done(None)


# ends


@mutant("half-frames-count", tag="wire", breaks=["X2"])
class HalfFramesCount(Socket):
    """Takes what has come of a message for all of it when the connection ends."""

    def _over(self, text: str) -> None:
        rest = self._reader.partial
        if self.is_open and rest:
            with suppress(ClientError):
                self.message(Message(TEXT if rest[0] & 0x0F == TEXT else BINARY, rest[2:]))
        super()._over(text)


@mutant("end-unanswered", tag="life-cycle", breaks=["X2"])
class EndUnanswered(Socket):
    """Keeps its side of a connection open when the server has ended the other one."""

    def eof_received(self) -> bool:
        super().eof_received()
        return True


class _WholeHeads(ResponseReader):
    def feed(self, data: bytes) -> Response | None:
        self._buffer += data
        return super().feed(b"") if b"\r\n\r\n" in self._buffer else None


@mutant("end-unnoticed-before-upgrade", tag="life-cycle", breaks=["X5"])
class EndUnnoticedBeforeUpgrade(Socket):
    """Waits on for the whole answer to its upgrade, when the server has ended the connection too."""

    def begin(self, wire: Wire) -> None:
        self._response = _WholeHeads("GET")
        super().begin(wire)

    def _over(self, text: str) -> None:
        if self.opened.done():
            super()._over(text)


@mutant("garbage-is-a-defect", tag="wording", breaks=["X5"])
class GarbageIsADefect(Socket):
    """Reports bytes that are no answer to its upgrade as a failure of its own."""

    def _handshake(self, read: Callable[[], Response | None]) -> Response | None:
        def read_carelessly() -> Response | None:
            try:
                return read()
            except ClientError as error:
                raise ClientError("internal", error.text) from None

        return super()._handshake(read_carelessly)


@mutant("encoded-bodies-are-too-large", tag="data", breaks=["N9"])
class EncodedBodiesAreTooLarge(MessageReader):
    """Takes no more bytes of a message than a plain body may have: in base64 and hex it has more."""

    def check(self, first: int, second: int, size: int) -> None:
        super().check(first, second, size)
        if size > PLAIN_MAX:
            raise BadFrame(1009, f"a message of more than {PLAIN_MAX} bytes")


@mutant("short-lengths-by-letters", tag="wire", breaks=["N5"])
class ShortLengthsByLetters(Socket):
    """Chooses the form of a frame's length by the letters of its text."""

    def write(self, opcode: int, payload: bytes) -> None:
        letters = len(payload.decode(errors="replace"))
        if opcode != TEXT or not letters < 126 <= len(payload):
            super().write(opcode, payload)
            return
        assert self.wire is not None
        frame = encode(opcode, payload, self._random)
        self.wire.write(bytes((frame[0], 0x80 | len(payload) & 0x7F)) + frame[4:])
