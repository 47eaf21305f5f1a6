"""What a message server gets, and what it says, in bytes. No IO.

A codec is for one connection. `feed` gives what has come, as values of the classes below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from conformance.clients.reference.kit import ClientError

SIZE_DIGITS = 10  #: of the size of a message


@dataclass(frozen=True)
class Ready:
    """The server has taken the client in."""


@dataclass(frozen=True)
class Message:
    """A client published."""

    topic: str
    payload: bytes


@dataclass(frozen=True)
class Granted:
    """A subscription is made, or `sync` is answered."""


@dataclass(frozen=True)
class Write:
    """The server wants an answer."""

    data: bytes


@dataclass(frozen=True)
class Broken:
    """After what came with it, the server has refused something, or nothing can be read any more."""

    error: ClientError


Came = Ready | Message | Granted | Write | Broken


class Codec(Protocol):
    """The words of one message server.

    Attributes:
        max_payload: Bytes of a message; None if there is no limit.
        waits_for: How many `Granted` are due.
    """

    max_payload: int | None
    waits_for: int

    def hello(self) -> bytes:
        """The first bytes on a connection."""

    def feed(self, data: bytes) -> list[Came]:
        """What the server said. Raises `ClientError` (protocol, refused)."""

    def subscribe(self, topic: str, queue: str = "") -> bytes:
        """Listen to a topic, perhaps as one of a group."""

    def unsubscribe_balanced(self) -> bytes:
        """Listen to no topic any more that has a group."""

    def sync(self) -> bytes:
        """What makes the server say that all of this is made, if it does not by itself."""

    def publish(self, topic: str, payload: bytes) -> bytes:
        """Send a message."""

    def close_frame(self) -> bytes:
        """The last bytes on a connection."""


def check_words(topics: Iterable[str]) -> None:
    """Raise `ClientError` (invalid, definite) for a topic that NATS takes for several words, or lines."""
    for topic in topics:
        if any(mark in topic for mark in " \t\r\n\0"):
            raise ClientError("invalid", f"the topic {topic!r} is not one word", definite=True)


class NatsCodec:
    """NATS (docs/protocols/moleculer.md, 6.1)."""

    def __init__(self) -> None:
        self.max_payload: int | None = None
        self.waits_for = 0
        self._buffer = bytearray()
        self._is_ready = False
        self._has_greeted = False
        self._sids = 0
        self._balanced: list[int] = []

    def hello(self) -> bytes:
        return b""

    def feed(self, data: bytes) -> list[Came]:
        self._buffer += data
        found: list[Came] = []
        try:
            while (came := self._next()) is not None:
                found += came
        except ClientError as error:
            if not found:
                raise
            found.append(Broken(error))  # what came before it counts
        return found

    def _next(self) -> list[Came] | None:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        verb, _, rest = line.replace(b"\t", b" ").partition(b" ")
        if verb.upper() != b"MSG":
            del self._buffer[: end + 2]
            return self._control(verb.upper(), rest)
        words = rest.split()
        if len(words) < 3 or not words[-1].isdigit() or len(words[-1]) > SIZE_DIGITS:
            raise ClientError("protocol", f"a message without a size: {line[:80]!r}")
        size = int(words[-1])
        if len(self._buffer) < end + 2 + size + 2:
            return None
        payload = bytes(self._buffer[end + 2 : end + 2 + size])
        if self._buffer[end + 2 + size : end + 2 + size + 2] != b"\r\n":
            raise ClientError("protocol", "a message of another size than it says")
        del self._buffer[: end + 2 + size + 2]
        return [Message(words[0].decode(errors="replace"), payload)]

    def _control(self, verb: bytes, rest: bytes) -> list[Came]:
        match verb:
            case b"INFO":
                self.max_payload = self._limit(rest)
                if self._has_greeted:  # the server may report itself again
                    return []
                self._has_greeted = True
                options = {"verbose": False, "pedantic": False, "protocol": 1, "lang": "reference"}
                return [Write(b"CONNECT %s\r\nPING\r\n" % json.dumps(options).encode())]
            case b"PING":
                return [Write(b"PONG\r\n")]
            case b"PONG" if not self._is_ready:
                self._is_ready = True
                return [Ready()]
            case b"PONG":
                return [Granted()]
            case b"-ERR":
                raise ClientError("refused", rest.decode(errors="replace"))
        return []

    @staticmethod
    def _limit(info: bytes) -> int | None:
        """The largest message, as the server's INFO has it. Raises `ClientError` (protocol)."""
        try:
            found = json.loads(info)
        except ValueError as error:
            raise ClientError("protocol", f"an INFO that is no JSON: {error}") from None
        limit = found.get("max_payload") if isinstance(found, dict) else None
        return limit if isinstance(limit, int) and limit > 0 else None

    def subscribe(self, topic: str, queue: str = "") -> bytes:
        self.check(topic, queue)
        self._sids += 1
        if queue:
            self._balanced.append(self._sids)
        group = f" {queue}" if queue else ""
        return f"SUB {topic}{group} {self._sids}\r\n".encode()

    def unsubscribe_balanced(self) -> bytes:
        gone, self._balanced = self._balanced, []
        return b"".join([b"UNSUB %d\r\n" % sid for sid in gone])

    def sync(self) -> bytes:
        self.waits_for += 1
        return b"PING\r\n"

    def check(self, *topics: str) -> None:
        """Raise `ClientError` (invalid, definite) for a topic that would be several words, or lines."""
        check_words(topics)

    def publish(self, topic: str, payload: bytes) -> bytes:
        self.check(topic)
        return b"PUB %s %d\r\n%s\r\n" % (topic.encode(), len(payload), payload)

    def close_frame(self) -> bytes:
        return b""


class RedisCodec:
    """Redis, RESP3: one connection for both ways (docs/protocols/moleculer.md, 6.2)."""

    max_payload: int | None = None

    def __init__(self) -> None:
        self.waits_for = 0
        self._buffer = bytearray()
        self._is_ready = False

    def hello(self) -> bytes:
        return self._command(b"HELLO", b"3")

    def _command(self, *words: bytes) -> bytes:
        return b"*%d\r\n" % len(words) + b"".join([b"$%d\r\n%s\r\n" % (len(word), word) for word in words])

    def feed(self, data: bytes) -> list[Came]:
        self._buffer += data
        found: list[Came] = []
        at = 0
        while True:
            try:
                kind, value, at = self._value(at)
            except _Unfinished:
                del self._buffer[:at]
                return found
            found += self._meaning(kind, value)

    def _meaning(self, kind: bytes, value: Any) -> list[Came]:
        if kind == b"-":
            raise ClientError("refused", value.decode(errors="replace"))
        if not self._is_ready:
            self._is_ready = True
            return [Ready()]
        if kind == b">" and value[0] == b"message":
            return [Message(value[1].decode(), value[2])]
        return [Granted()] if kind == b">" and value[0] == b"subscribe" else []

    def _value(self, at: int) -> tuple[bytes, Any, int]:
        """The value that begins there: its type, what it is, and where it ends."""
        end = self._buffer.find(b"\r\n", at)
        if end < 0:
            raise _Unfinished
        kind, rest = bytes(self._buffer[at : at + 1]), bytes(self._buffer[at + 1 : end])
        at = end + 2
        if kind in b"+-:_#,(":
            return kind, rest, at
        size = int(rest)
        if kind in b"$=!":
            if len(self._buffer) < at + size + 2:
                raise _Unfinished
            return kind, bytes(self._buffer[at : at + size]), at + size + 2
        if kind not in b"*>%~":
            raise ClientError("protocol", f"what is {kind!r} in RESP3?")
        values = []
        for _ in range(2 * size if kind == b"%" else size):
            _, value, at = self._value(at)
            values.append(value)
        return kind, values, at

    def subscribe(self, topic: str, queue: str = "") -> bytes:
        self.waits_for += 1
        return self._command(b"SUBSCRIBE", topic.encode())

    def unsubscribe_balanced(self) -> bytes:
        return b""

    def sync(self) -> bytes:
        return b""

    def publish(self, topic: str, payload: bytes) -> bytes:
        return self._command(b"PUBLISH", topic.encode(), payload)

    def close_frame(self) -> bytes:
        return b""


class _Unfinished(Exception):
    """There is more to come."""


class MqttCodec:
    """MQTT 3.1.1, QoS 0 (docs/protocols/moleculer.md, 6.3)."""

    max_payload: int | None = None

    def __init__(self) -> None:
        self.waits_for = 0
        self._buffer = bytearray()
        self._packets = 0

    def hello(self) -> bytes:
        return self._packet(0x10, b"\x00\x04MQTT\x04\x02\x00\x00" + self._text(""))

    def _text(self, text: str) -> bytes:
        data = text.encode()
        return len(data).to_bytes(2, "big") + data

    def _packet(self, kind: int, body: bytes) -> bytes:
        left, length = len(body), bytearray()
        while True:
            left, digit = divmod(left, 128)
            length.append(digit | (0x80 if left else 0))
            if not left:
                return bytes([kind]) + length + body

    def feed(self, data: bytes) -> list[Came]:
        self._buffer += data
        found: list[Came] = []
        while (packet := self._next()) is not None:
            found += self._meaning(*packet)
        return found

    def _next(self) -> tuple[int, bytes] | None:
        length = shift = 0
        for at in range(1, min(5, len(self._buffer))):
            digit = self._buffer[at]
            length |= (digit & 0x7F) << shift
            shift += 7
            if digit < 0x80:
                end = at + 1 + length
                if len(self._buffer) < end:
                    return None
                kind, body = self._buffer[0], bytes(self._buffer[at + 1 : end])
                del self._buffer[:end]
                return kind, body
        return None

    def _meaning(self, kind: int, body: bytes) -> list[Came]:
        match kind >> 4:
            case 2:
                if body[1]:
                    raise ClientError("refused", f"CONNACK {body[1]}", code=body[1])
                return [Ready()]
            case 3:
                size = int.from_bytes(body[:2], "big")
                at = 2 + size + (2 if kind & 0x06 else 0)
                return [Message(body[2 : 2 + size].decode(), body[at:])]
            case 9:
                return [Granted()]
        return []

    def subscribe(self, topic: str, queue: str = "") -> bytes:
        self._packets += 1
        self.waits_for += 1
        return self._packet(0x82, self._packets.to_bytes(2, "big") + self._text(topic) + b"\x00")

    def unsubscribe_balanced(self) -> bytes:
        return b""

    def sync(self) -> bytes:
        return b""

    def publish(self, topic: str, payload: bytes) -> bytes:
        return self._packet(0x30, self._text(topic) + payload)

    def close_frame(self) -> bytes:
        return self._packet(0xE0, b"")


CODECS: dict[str, type[Any]] = {"nats": NatsCodec, "redis": RedisCodec, "mqtt": MqttCodec}
