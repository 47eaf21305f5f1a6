"""NATS read by the letter of docs/protocols/moleculer.md, 6.1, line by line; no code of any client.

An unknown line is skipped. A message whose size is wrong is the end: it is not known where the next
line begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.moleculer.mqtt.codec import MqttCodec
from fakebrokers.moleculer.nats.codec import NatsCodec, Side
from fakebrokers.moleculer.nats.frames import Msg
from fakebrokers.moleculer.packets import Packet, values_of
from fakebrokers.moleculer.redis.codec import RedisCodec

CRLF = b"\r\n"
ALONE = (b"PING", b"PONG")
WITH_PAYLOAD = (b"MSG", b"HMSG", b"PUB", b"HPUB")
LINE_MAX = 64 * 1024  #: bytes of a line
PAYLOAD_MAX = 64 << 20  #: bytes of a payload
DIGITS_MAX = 10
GARBAGE = "garbage"
CONTROL = re.compile(rb"[\r\n\v\f]")


def wrapped(frame: Frame) -> Frame | None:
    """A packet as a message to the client."""
    if not isinstance(frame, Packet):
        return None
    return Msg(f"MOL.{frame.COMMAND}.client", "1", msgspec.json.encode(values_of(frame)))


class Wire:
    """What is spoken on a connection: NATS, unless the client's first byte says otherwise."""

    def __init__(self) -> None:
        self.is_known = False
        self.make: Callable[[Side], Codec] = ReadingCodec

    def see(self, side: Side, data: bytes) -> None:
        """The first bytes for one side."""
        if not self.is_known and data:
            self.is_known = True
            if side == "server":
                self.make = _SPOKEN.get(data[:1], ReadingCodec)


class EitherCodec(Codec):
    """One direction of a connection of any transporter; two of them share what is spoken."""

    def __init__(self, side: Side, wire: Wire) -> None:
        self._side: Side = side
        self._wire = wire
        self._codec: Codec | None = None

    def fresh(self) -> EitherCodec:
        return EitherCodec(self._side, self._wire)

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return 0 if self._codec is None else self._codec.partial

    def encode(self, frame: Frame) -> bytes:
        return ReadingCodec(self._side).encode(frame)

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        if self._codec is None:
            self._wire.see(self._side, unit)
            self._codec = self._wire.make(self._side)
        yield from self._codec.feed(unit)


class ReadingCodec(Codec):
    """One direction of a connection.

    Args:
        side: Who is handed the bytes.
    """

    def __init__(self, side: Side) -> None:
        self._side: Side = side
        self._buffer = bytearray()
        self._is_lost = False
        self._reader = NatsCodec(side, 0)
        self._writer = NatsCodec(side, 0)
        self._writer.wrap = wrapped

    def fresh(self) -> ReadingCodec:
        return ReadingCodec(self._side)

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return 0 if self._is_lost else len(self._buffer)

    def encode(self, frame: Frame) -> bytes:
        return self._writer.encode(frame)

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        self._buffer += unit
        while not self._is_lost:
            found = self._next()
            if found is None:
                return
            yield found

    def _next(self) -> tuple[Frame, int] | None:
        end = self._buffer.find(CRLF)
        if end < 0:
            return self._lost("a line without an end") if len(self._buffer) > LINE_MAX else None
        size = end + len(CRLF)
        line = bytes(self._buffer[:end])
        if CONTROL.search(line) is not None:  # the end of a line is two bytes
            del self._buffer[:size]
            return Malformed(line[:256], "a control character in a line"), size
        words = line.split()
        verb = words[0].upper() if words else b""
        if line[:4].upper() in ALONE and verb not in ALONE:
            del self._buffer[:size]
            return Malformed(line[:256], "a word that goes on"), size
        if verb in WITH_PAYLOAD:
            if not words[-1].isdigit() or len(words[-1]) > DIGITS_MAX:
                return self._lost("a size that is no number")
            size += int(words[-1]) + len(CRLF)
            if int(words[-1]) > PAYLOAD_MAX:
                return self._lost("a size that no message has")
            if len(self._buffer) < size:
                return None
            if self._buffer[size - len(CRLF) : size] != CRLF:
                return self._lost("a payload of another size")
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        found = next(self._reader.feed(data), None)
        if found is None or isinstance(found[0], Malformed):
            self._reader = NatsCodec(self._side, 0)  # this one may have given up
        return (found[0] if found else Malformed(data[:256], "no frame")), size

    def _lost(self, problem: str) -> tuple[Frame, int]:
        self._is_lost = True
        return Malformed(bytes(self._buffer[:256]), problem, GARBAGE), len(self._buffer)


#: The other protocols, by the first byte of a client.
_SPOKEN: Mapping[bytes, Callable[[Side], Codec]] = {
    b"*": lambda side: RedisCodec(side, resp3=True),
    b"\x10": lambda side: MqttCodec(),
}
