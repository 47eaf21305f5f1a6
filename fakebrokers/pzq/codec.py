"""Multipart messages to frames and back (docs/protocols/pzq.md, "Producer", "Consumer", "Monitor").

There is one codec for each of the broker's sockets, and one for each of the sockets that clients use, so
that a client can be written with the same frames. A unit is a tuple of parts; the routing id in front is
the transport's business.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable

from fakebrokers.core.frames import Frame, Malformed
from fakebrokers.core.session import Codec
from fakebrokers.pzq.frames import (
    ConsumerAck,
    Delivery,
    MonitorReply,
    MonitorRequest,
    Parts,
    Produce,
    ProduceAck,
    ProduceNack,
)

_SHOWN = 256  #: bytes of a malformed message that are kept


def _malformed(parts: Parts, expected: str, code: str) -> Malformed:
    got = f"{len(parts)} part{'' if len(parts) == 1 else 's'} of {[len(part) for part in parts[:8]]} bytes"
    return Malformed(data=b"".join(parts)[:_SHOWN], problem=f"expected {expected}, got {got}", code=code)


def _split(parts: Parts, start: int) -> tuple[Parts, Parts | None]:
    """What stands from `start` up to the first empty part, and what stands after it."""
    try:
        at = parts.index(b"", start)
    except ValueError:
        return parts[start:], None
    return parts[start:at], parts[at + 1 :]


def _read_produce(parts: Parts) -> Frame:
    if len(parts) < 2:
        return _malformed(parts, "[id][headers...][][body...]", "no-parts")
    headers, body = _split(parts, 1)
    return Produce(parts[0], headers, body)


def _read_consumer_ack(parts: Parts) -> Frame:
    if len(parts) < 2:
        return _malformed(parts, "[key][status]", "no-status")
    return ConsumerAck(parts[0], parts[1], parts[2:])


def _read_monitor_request(parts: Parts) -> Frame:
    if not parts:
        return _malformed(parts, "a command as the last part", "no-parts")
    return MonitorRequest(parts[-1], parts[:-1])


def _read_answer(parts: Parts) -> Frame:
    if not parts:
        return _malformed(parts, "[id][status][headers...][][texts...]", "no-parts")
    status = parts[1] if len(parts) > 1 else None
    headers, texts = _split(parts, 2)
    kind = ProduceAck if status == b"1" else ProduceNack
    return kind(parts[0], status, headers, texts)


def _read_delivery(parts: Parts) -> Frame:
    if not parts:
        return _malformed(parts, "[key][sent][timeout][headers...][][body...]", "no-parts")
    head, body = _split(parts, 1)
    sent = _number(head[0]) if head else None
    timeout = _number(head[1]) if len(head) > 1 else None
    return Delivery(parts[0], sent, timeout, head[2:], body)


def _read_monitor_reply(parts: Parts) -> Frame:
    if len(parts) < 2 or parts[0]:
        return _malformed(parts, "[][text]", "no-delimiter")
    return MonitorReply(parts[1], parts[2:])


def _number(part: bytes) -> int | bytes:
    """The number of a decimal part, as long as it comes out again as the same bytes."""
    if part.isdigit() and len(part) <= 20 and (part[:1] != b"0" or part == b"0"):
        return int(part)
    return part


def _octets(value: int | bytes | str) -> bytes:
    """A field as a part. Fault plans hold text where the wire has bytes."""
    if isinstance(value, bytes):
        return value
    return str(value).encode()


def _tail(parts: Parts | None) -> list[bytes]:
    return [] if parts is None else [b"", *parts]


def _write_produce(frame: Produce) -> list[bytes]:
    return [frame.id, *frame.headers, *_tail(frame.body)]


def _write_answer(frame: ProduceAck | ProduceNack) -> list[bytes]:
    status = [] if frame.status is None else [frame.status]
    return [frame.id, *status, *frame.headers, *_tail(frame.texts)]


def _write_delivery(frame: Delivery) -> list[int | bytes]:
    times = [time for time in (frame.sent, frame.timeout) if time is not None]
    return [frame.key, *times, *frame.headers, *_tail(frame.body)]


def _write_consumer_ack(frame: ConsumerAck) -> list[bytes]:
    return [frame.key, frame.status, *frame.extra]


def _write_monitor_request(frame: MonitorRequest) -> list[bytes]:
    return [*frame.envelope, frame.command]


def _write_monitor_reply(frame: MonitorReply) -> list[bytes]:
    return [b"", frame.text, *frame.extra]


_WRITERS: dict[type[Frame], Callable[..., list[bytes] | list[int | bytes]]] = {
    Produce: _write_produce,
    ProduceAck: _write_answer,
    ProduceNack: _write_answer,
    Delivery: _write_delivery,
    ConsumerAck: _write_consumer_ack,
    MonitorRequest: _write_monitor_request,
    MonitorReply: _write_monitor_reply,
}


class PzqCodec(Codec):
    """One end of one socket.

    The size of a frame is that of its parts, without ZMTP's own 2 or 9 bytes per part.
    """

    @staticmethod
    @abstractmethod
    def read(parts: Parts) -> Frame:
        """The frame of a message that arrives at this end."""

    def feed(self, unit: Parts) -> Iterable[tuple[Frame, int]]:
        return ((self.read(unit), sum(map(len, unit))),)

    def encode(self, frame: Frame) -> Parts:
        return tuple(map(_octets, _WRITERS[type(frame)](frame)))


class ReceiveCodec(PzqCodec):
    """The broker's receive socket (ROUTER): a producer's messages."""

    read = staticmethod(_read_produce)


class SendCodec(PzqCodec):
    """The broker's send socket (DEALER): consumers' acknowledgements."""

    read = staticmethod(_read_consumer_ack)


class MonitorCodec(PzqCodec):
    """The broker's monitor socket (ROUTER): requests."""

    read = staticmethod(_read_monitor_request)


class ProducerCodec(PzqCodec):
    """A producer's DEALER socket: the broker's answers."""

    read = staticmethod(_read_answer)


class ConsumerCodec(PzqCodec):
    """A consumer's ROUTER socket: deliveries, without the routing id that the socket puts in front."""

    read = staticmethod(_read_delivery)


class InquirerCodec(PzqCodec):
    """A monitoring client's socket, as a DEALER sees it: replies."""

    read = staticmethod(_read_monitor_reply)
