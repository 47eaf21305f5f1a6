"""Bytes to frames and back, for both sides of a connection (docs/protocols/blazingmq.md, 1).

What cannot be read comes out as `Malformed` with one of these codes:

    framing      a length that cannot be: nothing after it is read any more
    too-large    a length above `max_event`; likewise
    control      a control message that cannot be read, or that neither side sends to the other
    event        an event whose header or first message cannot be read

A broker drops the last two and goes on; where an event is too large it waits for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from struct import Struct, error

from fakebrokers.blazingmq import control
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.events import (
    padded,
    read_acks,
    read_confirms,
    read_push,
    read_put,
    write_acks,
    write_confirms,
    write_push,
    write_put,
)
from fakebrokers.blazingmq.frames_control import ControlFrame, Message
from fakebrokers.blazingmq.frames_events import (
    Ack,
    Confirm,
    EventFrame,
    HeartbeatRequest,
    HeartbeatResponse,
    OtherEvent,
    Push,
    Put,
    Reject,
)
from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError

HEADER_SIZE = 8
#: Hard limit of an event (soft: 512 MiB); a fake needs no more than the largest PUT.
MAX_EVENT = 128 * 1024 * 1024
_LARGEST = 2**31 - 1  #: the bit above marks fragments, which neither side sends
_VERSION = 1 << 6
_HEADER_WORDS = 2
_SIZE = Struct(">I")
#: size; version and kind; words of the header; encoding of a control message
_HEADER = Struct(">IBBBx")
_EXCERPT = 256  #: bytes of a malformed event that are kept

_READERS: Mapping[int, Callable[[bytes], Frame]] = {
    EventType.PUT: read_put,
    EventType.PUSH: read_push,
    EventType.ACK: read_acks,
    EventType.CONFIRM: partial(read_confirms, Confirm),
    EventType.REJECT: partial(read_confirms, Reject),
}
_HEARTBEATS: Mapping[int, Frame] = {
    EventType.HEARTBEAT_REQ: HeartbeatRequest(),
    EventType.HEARTBEAT_RSP: HeartbeatResponse(),
}


class BlazingCodec(Codec):
    """One connection's codec, of either side.

    Attributes:
        encoding: How control messages are written. They are read as each says itself.
        max_event: Largest event that is accepted, in bytes.
    """

    def __init__(self, encoding: Encoding = Encoding.BER, max_event: int = MAX_EVENT) -> None:
        self.encoding = encoding
        self.max_event = max_event
        self._buffer = bytearray()
        self._pos = 0  # in the buffer: everything before it has come out as frames
        self._lost = False

    def fresh(self) -> BlazingCodec:
        return type(self)(self.encoding, self.max_event)

    @property
    def partial(self) -> int:
        """Bytes of an event that has not arrived whole."""
        return len(self._buffer) - self._pos

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        """Take in bytes at once; what comes out as they are iterated over: see `Codec.feed`.

        Frames that are not fetched wait for the next call.
        """
        if not self._lost:
            self._buffer += unit
        return self._complete_frames()

    def _complete_frames(self) -> Iterator[tuple[Frame, int]]:
        buffer = self._buffer
        while len(buffer) - self._pos >= _SIZE.size:
            start = self._pos
            (size,) = _SIZE.unpack_from(buffer, start)
            if not HEADER_SIZE <= size <= self.max_event:
                arrived = len(buffer) - start
                yield self._give_up(self._impossible(size)), arrived
                return
            if size > len(buffer) - start:
                break
            self._pos = start + size
            yield self.decode(bytes(buffer[start : self._pos])), size
        del buffer[: self._pos]
        self._pos = 0

    def _impossible(self, size: int) -> tuple[WireError, str]:
        if HEADER_SIZE <= size <= _LARGEST:
            return WireError(
                f"an event of at most {self.max_event} bytes", f"a length of {size}", 0
            ), "too-large"
        return WireError("an event of 8 to 2^31 - 1 bytes", f"a length of {size}", 0), "framing"

    def _give_up(self, problem: tuple[WireError, str]) -> Malformed:
        """Where the next event begins is unknown from here on."""
        excerpt = bytes(self._buffer[self._pos : self._pos + _EXCERPT])
        self._lost = True
        self._buffer.clear()
        self._pos = 0
        return Malformed(excerpt, str(problem[0]), problem[1])

    def decode(self, event: bytes) -> Frame:
        """The frame of a whole event. Never raises."""
        kind = event[4] & 0x3F
        header = event[5] * 4
        if not HEADER_SIZE <= header <= len(event):
            problem = WireError("a header of 8 bytes or more", f"{header} of {len(event)} bytes", 5)
            return Malformed(event[:_EXCERPT], str(problem), "event")
        body = event[header:]
        try:
            read = _READERS.get(kind)
            if read is not None:
                return read(body)
            if kind in (EventType.CONTROL, EventType.AUTHENTICATION):
                return _read_control(kind, event[6] >> 5, body)
        except WireError as problem:
            code = "event" if kind in _READERS else "control"
            told = f"expected {problem.expected}" if kind == EventType.AUTHENTICATION else problem
            return Malformed(event[:_EXCERPT], f"{_label(kind)}: {told}", code)
        if kind in _HEARTBEATS:  # it may have a body
            return _HEARTBEATS[kind]
        return OtherEvent(kind, body)

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame, as it stands: nothing is corrected.

        Raises:
            WireError: A field does not fit its place on the wire, or this is no frame of this protocol.
        """
        if isinstance(frame, Malformed):
            return frame.data
        try:
            return self._encoded(frame)
        except (error, TypeError, AttributeError, ValueError, OverflowError) as problem:
            raise WireError(f"a {kind_of(frame)} that fits the wire", str(problem)) from None

    def _encoded(self, frame: Frame) -> bytes:
        match frame:
            case Ack():
                return event_bytes(EventType.ACK, write_acks(frame))
            case Push():
                return event_bytes(EventType.PUSH, write_push(frame))
            case Put():
                return event_bytes(EventType.PUT, write_put(frame))
            case Confirm() | Reject():
                return event_bytes(frame.TYPE, write_confirms(frame))
            case ControlFrame():
                body = padded(control.write(frame, self.encoding))
                kind = (
                    EventType.AUTHENTICATION if frame.MESSAGE is Message.AUTHENTICATION else EventType.CONTROL
                )
                return event_bytes(kind, [body], self.encoding << 5)
            case EventFrame():
                return event_bytes(frame.TYPE, [])
            case OtherEvent():
                return event_bytes(frame.type, [frame.body])
        raise WireError("a frame of BlazingMQ", kind_of(frame))

    def mend(self, unit: bytes) -> bytes:
        """The bytes of one event with its length made right."""
        return len(unit).to_bytes(4) + unit[4:]


def event_bytes(kind: int, parts: list[bytes], special: int = 0) -> bytes:
    """An event with this body; `special` is the seventh byte of its header."""
    body = b"".join(parts)
    return _HEADER.pack(HEADER_SIZE + len(body), _VERSION | kind, _HEADER_WORDS, special) + body


def _read_control(kind: int, encoding: int, body: bytes) -> ControlFrame:
    if encoding not in (Encoding.BER, Encoding.JSON):
        raise WireError("an encoding of 0 (BER) or 1 (JSON)", str(encoding), 6)
    message = Message.AUTHENTICATION if kind == EventType.AUTHENTICATION else None
    return control.read(body, Encoding(encoding), message)


def _label(kind: int) -> str:
    return EventType(kind).name
