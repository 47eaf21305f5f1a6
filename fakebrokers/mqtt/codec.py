"""MQTT 3.1.1 on the wire: a byte of type and flags, the length of the rest, the rest."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError
from fakebrokers.mqtt import frames as f

#: PUBLISH without flags.
_QOS_0 = 0x30
_EXCERPT = 256
_U16 = struct.Struct(">H")


class _Bad(Exception):
    """Bytes that no frame can be made of."""


class _Reader:
    """Takes the body of a packet apart."""

    def __init__(self, data: bytes, flags: int, kinds: f.Kinds) -> None:
        self.data = data
        self.flags = flags
        self.kinds = kinds
        self.at = 0

    def u8(self) -> int:
        return self.take(1)[0]

    def u16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise _Bad(f"expected {size} bytes at {self.at}, got {len(self.data) - self.at}")
        piece, self.at = self.data[self.at : end], end
        return piece

    def string(self) -> bytes:
        return self.take(self.u16())

    def text(self) -> str:
        data = self.string()
        try:
            found = data.decode()
        except UnicodeDecodeError as problem:
            raise _Bad(f"expected UTF-8, got {data[:40]!r}: {problem.reason}") from None
        if "\0" in found:
            raise _Bad("expected text without U+0000")
        return found

    def identifier(self) -> int:
        found = self.u16()
        if not found:
            raise _Bad("expected a packet id other than 0")
        return found

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


class MqttCodec(Codec):
    """One connection's codec; the same for both sides.

    Args:
        max_size: Largest packet in bytes that is accepted; 0 for what MQTT allows (256 MiB).
        kinds: What is made of what comes in.
    """

    def __init__(self, max_size: int = 0, *, kinds: f.Kinds = f.KINDS) -> None:
        self.max_size = max_size
        self.kinds = kinds
        self._rest = bytearray()
        self._needed = 0
        self._lost = False

    def fresh(self) -> MqttCodec:
        """A codec of the same settings with nothing in its buffer."""
        return type(self)(self.max_size, kinds=self.kinds)

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return len(self._rest)

    @property
    def begun(self) -> int:
        """The type of the packet that has not arrived whole; 0 if there is none."""
        return self._rest[0] >> 4 if self._rest else 0

    def feed(self, unit: bytes) -> Iterator[tuple[Frame, int]]:
        """Frames and their sizes; see `Codec.feed`."""
        if self._lost:
            return
        if self._rest:
            self._rest += unit
            if len(self._rest) < self._needed:
                return
            unit = bytes(self._rest)
            self._rest.clear()
        at = 0
        try:
            while at < len(unit):
                body, end = self._extent(unit, at)
                if not body or end > len(unit):
                    self._rest += unit[at:]
                    self._needed = end - at if body else len(self._rest) + 1
                    return
                frame = _read(unit[at], unit[body:end], self.kinds)
                size, at = end - at, end
                yield frame, size
        except _Bad as bad:
            self._lost = True
            # a CONNECT that cannot be read may hold a password
            shown = unit[at : at + 2] if unit[at] >> 4 == 1 else unit[at : at + _EXCERPT]
            yield Malformed(shown, str(bad)), len(unit) - at

    def _extent(self, unit: bytes, at: int) -> tuple[int, int]:
        """Where the body begins and ends; (0, 0) as long as that is not known."""
        size, shift = 0, 0
        for place in range(at + 1, at + 5):
            if place >= len(unit):
                return 0, 0
            digit = unit[place]
            size |= (digit & 0x7F) << shift
            if not digit & 0x80:
                if 0 < self.max_size < size:
                    raise _Bad(f"expected a packet of at most {self.max_size} bytes, got {size}")
                return place + 1, place + 1 + size
            shift += 7
        raise _Bad("expected a length of at most four bytes")

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame, as it is.

        Raises:
            WireError: This is no frame of MQTT, or a field does not fit.
        """
        kind = type(frame)
        writer = _WRITERS.get(kind) or _WRITERS.get(kind.__base__)  # type: ignore[arg-type]
        if writer is None:
            return self.encode_other(frame)
        try:
            return writer(frame)
        except (struct.error, ValueError, OverflowError) as problem:
            raise WireError(f"a {kind_of(frame)} that fits the wire", str(problem)) from None

    def encode_other(self, frame: Frame) -> bytes:
        """The bytes of what is no frame of MQTT."""
        if isinstance(frame, Malformed):
            return frame.data
        raise WireError("a frame of MQTT", kind_of(frame))

    def mend(self, unit: bytes) -> bytes:
        """The bytes of one packet with its length made right."""
        try:
            body, _ = self._extent(unit, 0)
        except _Bad:
            return unit
        return unit[:1] + length_bytes(len(unit) - body) + unit[body:] if body else unit


@lru_cache(maxsize=4096)
def length_bytes(size: int) -> bytes:
    """A length, seven bits in each byte, the low ones first."""
    found = bytearray()
    while size > 0x7F:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


# reading


def _read(head: int, body: bytes, kinds: f.Kinds) -> Frame:
    if head == _QOS_0 and (plain := _read_plain_publish(body, kinds)) is not None:
        return plain
    kind, flags = head >> 4, head & 0x0F
    reader = _Reader(body, flags, kinds)
    if kind == 3:
        return _read_publish(reader)
    found = _READERS.get(kind)
    if found is None:
        raise _Bad(f"expected a packet type from 1 to 14, got {kind}")
    expected, read = found
    if flags != expected and kind not in _ANY_FLAGS:
        raise _Bad(f"expected flags {expected} of packet type {kind}, got {flags}")
    frame = read(reader)
    if reader.more and not 4 <= kind <= 7:  # after the id of PUBACK and the like mosquitto looks no further
        raise _Bad(f"expected {reader.at} bytes in a {kind_of(frame)}, got {len(body)}")
    return frame


def _read_plain_publish(body: bytes, kinds: f.Kinds) -> Frame | None:
    """A PUBLISH with QoS 0, which most messages are; None: the long way says what is wrong."""
    last = 2 + int.from_bytes(body[:2], "big")
    try:
        topic = body[2:last].decode()
    except UnicodeDecodeError:
        return None
    return kinds.publish(topic, body[last:]) if 2 <= last <= len(body) and "\0" not in topic else None


def _read_publish(reader: _Reader) -> Frame:
    qos = reader.flags >> 1 & 3
    if qos == 3:
        raise _Bad("expected a QoS from 0 to 2, got 3")
    topic = reader.text()
    number = reader.identifier() if qos else 0
    payload = reader.data[reader.at :]
    return reader.kinds.publish(topic, payload, qos, number, bool(reader.flags & 1), bool(reader.flags & 8))


def _read_connect(reader: _Reader) -> Frame:
    protocol, level, flags, keep_alive = reader.text(), reader.u8(), reader.u8(), reader.u16()
    if (protocol, level) == ("MQTT", 5):  # the rest is different there, and such a client is refused anyway
        reader.at = len(reader.data)
        return f.Connect("", keep_alive, bool(flags & 2), protocol=protocol, level=level)
    if flags & 1:
        raise _Bad("expected bit 0 of the connect flags to be 0")
    client, will = reader.text(), None
    if flags & 0x04:
        qos = flags >> 3 & 3
        if qos == 3:
            raise _Bad("expected a QoS from 0 to 2 for the will, got 3")
        will = f.Will(reader.text(), reader.string(), qos, bool(flags & 0x20))
    elif flags & 0x38:
        raise _Bad("expected no QoS and no retain flag where there is no will")
    user = reader.text() if flags & 0x80 else None
    password = reader.string() if flags & 0x40 else None
    return f.Connect(client, keep_alive, bool(flags & 2), will, user, password, protocol, level)


def _read_connack(reader: _Reader) -> Frame:
    present, code = reader.u8(), reader.u8()
    reader.at = len(reader.data)  # in MQTT 5 properties follow
    return f.Connack(code, bool(present & 1))


def _read_subscribe(reader: _Reader) -> Frame:
    number = reader.identifier()
    filters: list[tuple[str, int]] = []
    while reader.more or not filters:
        name, qos = reader.text(), reader.u8()
        if qos > 2:
            raise _Bad(f"expected a QoS from 0 to 2, got {qos}")
        filters.append((name, qos))
    return f.Subscribe(number, tuple(filters))


def _read_suback(reader: _Reader) -> Frame:
    return f.Suback(reader.u16(), tuple(reader.take(len(reader.data) - reader.at)))


def _read_unsubscribe(reader: _Reader) -> Frame:
    number, filters = reader.identifier(), [reader.text()]
    while reader.more:
        filters.append(reader.text())
    return f.Unsubscribe(number, tuple(filters))


def _read_pingreq(reader: _Reader) -> Frame:
    reader.take(len(reader.data))  # mosquitto does not mind what is there
    return f.Pingreq()


#: Types of whose flags mosquitto takes no notice: PUBACK, PUBREC, PUBCOMP, PINGREQ.
_ANY_FLAGS = (4, 5, 7, 12)
#: By the packet's type: its flags, and what reads it.
_READERS: Mapping[int, tuple[int, Callable[[_Reader], Frame]]] = {
    1: (0, _read_connect),
    2: (0, _read_connack),
    4: (0, lambda reader: f.Puback(reader.identifier())),
    5: (0, lambda reader: f.Pubrec(reader.identifier())),
    6: (2, lambda reader: f.Pubrel(reader.identifier())),
    7: (0, lambda reader: f.Pubcomp(reader.identifier())),
    8: (2, _read_subscribe),
    9: (0, _read_suback),
    10: (2, _read_unsubscribe),
    11: (0, lambda reader: f.Unsuback(reader.u16())),
    12: (0, _read_pingreq),
    13: (0, lambda reader: f.Pingresp()),
    14: (0, lambda reader: reader.kinds.disconnect()),
}

# writing


def _string(data: bytes | str) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return _U16.pack(len(raw)) + raw


def _packet(head: int, body: bytes = b"") -> bytes:
    return b"%c%b%b" % (head, length_bytes(len(body)), body)


def _write_publish(frame: Any) -> bytes:
    topic, payload = frame.topic.encode(), frame.payload
    number = _U16.pack(frame.packet_id) if frame.qos else b""
    head = 0x30 | frame.dup << 3 | frame.qos << 1 | frame.retain
    size = 2 + len(topic) + len(number) + len(payload)
    return b"%c%b%b%b%b%b" % (head, length_bytes(size), _U16.pack(len(topic)), topic, number, payload)


def _write_connect(frame: Any) -> bytes:
    will = frame.will
    flags = frame.clean << 1 | (frame.user is not None) << 7 | (frame.password is not None) << 6
    parts = [_string(frame.client_id)]
    if will is not None:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
        parts += [_string(will.topic), _string(will.payload)]
    parts += [_string(each) for each in (frame.user, frame.password) if each is not None]
    head = _string(frame.protocol) + bytes([frame.level, flags]) + _U16.pack(frame.keep_alive)
    return _packet(0x10, head + b"".join(parts))


def _write_connack(frame: Any) -> bytes:
    """The codes from 0x80 on are those of MQTT 5, where properties follow."""
    properties = [0] if frame.code >= 0x80 else []
    return _packet(0x20, bytes([frame.session_present, frame.code, *properties]))


def _write_subscribe(frame: Any) -> bytes:
    filters = b"".join([_string(name) + bytes([qos]) for name, qos in frame.filters])
    return _packet(0x82, _U16.pack(frame.packet_id) + filters)


def _write_suback(frame: Any) -> bytes:
    return _packet(0x90, _U16.pack(frame.packet_id) + bytes(frame.codes))


def _write_unsubscribe(frame: Any) -> bytes:
    return _packet(0xA2, _U16.pack(frame.packet_id) + b"".join(map(_string, frame.filters)))


def _numbered(head: int) -> Callable[[Any], bytes]:
    return lambda frame: b"%c\x02%b" % (head, _U16.pack(frame.packet_id))


def _bare(head: int) -> Callable[[Any], bytes]:
    return lambda frame: b"%c\x00" % head


_WRITERS: dict[type[Frame], Callable[[Any], bytes]] = {
    f.Publish: _write_publish,
    f.Connect: _write_connect,
    f.Connack: _write_connack,
    f.Puback: _numbered(0x40),
    f.Pubrec: _numbered(0x50),
    f.Pubrel: _numbered(0x62),
    f.Pubcomp: _numbered(0x70),
    f.Subscribe: _write_subscribe,
    f.Suback: _write_suback,
    f.Unsubscribe: _write_unsubscribe,
    f.Unsuback: _numbered(0xB0),
    f.Pingreq: _bare(0xC0),
    f.Pingresp: _bare(0xD0),
    f.Disconnect: _bare(0xE0),
}
