"""The TCP transporter on the wire: a check byte, the length of all, a type, a packet.

crc = b1 ^ b2 ^ b3 ^ b4 ^ b5 | int32 length | type | bytes of the serializer
"""

from __future__ import annotations

from collections.abc import Iterator

from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError
from fakebrokers.moleculer.packets import BrokenPacket, Packet, packet_from, values_of
from fakebrokers.moleculer.serialization import find_serializer, serializer_of
from fakebrokers.moleculer.serializers import Serializer, Unreadable
from fakebrokers.moleculer.tcp.frames import NUMBERS, TYPES

HEADER = 6
#: Bytes that a node buffers before it gives the connection up (`maxPacketSize`).
MAX_PACKET = 1024 * 1024
_EXCERPT = 256
_NUMBER_OF = {kind.COMMAND: number for number, kind in TYPES.items()}


class TcpCodec(Codec):
    """One connection's codec; the same for both sides.

    Args:
        serializer: Of the packets that are written; what is read shows its own.
        max_packet: Largest frame in bytes that is accepted.
    """

    def __init__(self, serializer: Serializer | None = None, max_packet: int = MAX_PACKET) -> None:
        self.serializer = serializer or find_serializer("JSON")
        self.max_packet = max_packet
        self._buffer = bytearray()
        self._lost = False

    def fresh(self) -> TcpCodec:
        """A codec of the same settings with nothing in its buffer."""
        return TcpCodec(self.serializer, self.max_packet)

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._buffer)

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        """Frames and their sizes; see `Codec.feed`."""
        if self._lost:
            return
        buffer = self._buffer
        buffer += unit
        at = 0
        while len(buffer) - at >= HEADER:
            head = bytes(buffer[at : at + HEADER])
            size = int.from_bytes(head[1:5], "big", signed=True)
            problem = self._problem(head, size)
            if problem:
                self._lost = True
                arrived = len(buffer) - at
                data = bytes(buffer[at : at + _EXCERPT])
                buffer.clear()
                yield Malformed(data, problem), arrived
                return
            if len(buffer) - at < size:
                break
            body = bytes(buffer[at + HEADER : at + size])
            at += size
            yield self._read(head, body), size
        del buffer[:at]

    def _problem(self, head: bytes, size: int) -> str:
        """What is wrong with a header, for which a real node destroys the connection."""
        if head[0] != _check(head[1:]):
            return f"expected the check byte {_check(head[1:])}, got {head[0]}"
        if head[5] not in TYPES:
            return f"expected a type from 1 to 8, got {head[5]}"
        if not HEADER <= size <= self.max_packet:
            return f"expected a length from {HEADER} to {self.max_packet}, got {size}"
        return ""

    @staticmethod
    def _read(head: bytes, body: bytes) -> Frame:
        kind = TYPES[head[5]]
        try:
            values = serializer_of(body).read(kind.COMMAND, body)
        except Unreadable as problem:
            return Malformed((head + body)[:_EXCERPT], str(problem), "packet")
        if not isinstance(values, dict):
            problem_text = f"expected an object in a {kind_of(kind)}, got {values!r:.60}"
            return Malformed((head + body)[:_EXCERPT], problem_text, "packet")
        return packet_from(kind, values)

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame.

        Raises:
            WireError: This packet never goes over TCP.
        """
        if isinstance(frame, Malformed):
            return frame.data
        if isinstance(frame, BrokenPacket):
            return framed(_NUMBER_OF[frame.command], frame.payload)
        number = NUMBERS.get(type(frame))  # type: ignore[arg-type]
        if number is None or not isinstance(frame, Packet):
            raise WireError("a packet that goes over TCP", kind_of(frame))
        return framed(number, self.serializer.write(frame.COMMAND, values_of(frame)))

    def mend(self, unit: bytes) -> bytes:
        """The bytes of one frame with length and check byte made right."""
        return framed(unit[5], unit[HEADER:]) if len(unit) >= HEADER else unit


def framed(number: int, body: bytes) -> bytes:
    """A frame of a type around a body."""
    rest = (HEADER + len(body)).to_bytes(4, "big") + bytes([number])
    return bytes([_check(rest)]) + rest + body


def _check(rest: bytes) -> int:
    found = 0
    for each in rest:
        found ^= each
    return found
