"""BlazingMQ, read by the letter of docs/protocols/blazingmq.md, 1 to 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.decoders import SHOWN, Unreadable
from conformance.decoders.blazingmq import events
from conformance.decoders.blazingmq.control import Kinds, read_ber_message, read_json_message
from fakebrokers.blazingmq import frames as f
from fakebrokers.core.frames import Frame, Malformed

HEADER = 8  #: bytes of the header of an event
WORD = 4
LARGEST = 128 << 20  #: bytes of an event that a client waits for; two of the largest messages
CONTROL, AUTHENTICATION = 1, 15  #: types of events
BER, JSON = 0, 1  #: encodings of control messages

#: What reads the body of an event, by its type.
BODIES: Mapping[int, Callable[[bytes], Frame]] = {
    2: events.read_put,
    3: events.read_confirm,
    4: events.read_push,
    5: events.read_ack,
    11: lambda body: f.HeartbeatRequest(),
    12: lambda body: f.HeartbeatResponse(),
    13: events.read_reject,
}


class BlazingDecoder:
    """Reads what one side of a connection is handed; both sides read alike.

    What cannot be read is `Malformed` with the first bytes of the event and one of these codes:

        framing, too-large  a length that cannot be, or is too large; nothing after it is read any more
        control             a control message that cannot be read, or that clients and brokers do not exchange
        event               an event whose header or first message cannot be read
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._is_lost = False

    @property
    def partial(self) -> int:
        """Bytes of an event that has not arrived whole."""
        return 0 if self._is_lost else len(self._buffer)

    def feed(self, unit: bytes) -> list[tuple[Frame, int]]:
        """Take in bytes; each event that is whole now, with its size in bytes."""
        buffer = self._buffer
        buffer += unit
        found: list[tuple[Frame, int]] = []
        start = 0
        while not self._is_lost and len(buffer) - start >= WORD:
            size = int.from_bytes(buffer[start : start + WORD])
            code = "framing" if size >> 31 or size < HEADER else "too-large" if size > LARGEST else ""
            if code:
                self._is_lost = True
                shown = bytes(buffer[start : start + SHOWN])
                problem = f"expected a length from {HEADER} to {LARGEST}, came {size}"
                found.append((Malformed(shown, problem, code), len(buffer) - start))
            elif size > len(buffer) - start:
                break
            else:
                found.append((self.read(bytes(buffer[start : start + size])), size))
                start += size
        del buffer[:start]
        return found

    def read(self, event: bytes) -> Frame:
        """The frame of a whole event."""
        kind = event[4] & 0x3F
        is_control = kind in (CONTROL, AUTHENTICATION)
        code = "event"
        try:
            start = WORD * event[5]
            if not HEADER <= start <= len(event):
                raise Unreadable(f"expected a header of {HEADER} to {len(event)} bytes, came {start}")
            body = event[start:]
            if is_control:
                code = "control"
                return _control(kind, event[6] >> 5, body)
            read = BODIES.get(kind)
            return f.OtherEvent(type=kind, body=body) if read is None else read(body)
        except (Unreadable, RecursionError) as problem:
            # what is wrong in a login is not shown
            shown = event[:HEADER] if kind == AUTHENTICATION else event[:SHOWN]
            return Malformed(shown, f"event of type {kind}: {problem}", code)


def _control(kind: int, encoding: int, body: bytes) -> Frame:
    kinds = Kinds.CREDENTIALS if kind == AUTHENTICATION else Kinds.SESSION
    if encoding == BER:
        return read_ber_message(body, kinds)
    if encoding == JSON:
        return read_json_message(body, kinds)
    raise Unreadable(f"there is no encoding {encoding}")
