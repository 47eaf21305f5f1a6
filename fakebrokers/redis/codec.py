"""RESP on the wire: commands of clients as arrays or as a line of words, and answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from fakebrokers.core.frames import Frame, Malformed, kind_of
from fakebrokers.core.session import Codec
from fakebrokers.errors import WireError
from fakebrokers.redis import frames as f
from fakebrokers.redis import resp
from fakebrokers.redis.words import split_words

Side = Literal["server", "client"]

MAX_INLINE = 64 * 1024
_READ_SIZE = 16 * 1024  # of Redis, which looks how long a line has become after each read
MAX_BULK = 512 * 1024 * 1024
MAX_WORDS = 2**31 - 1
_EXCERPT = 256
#: A PUBLISH up to its channel, and between channel and payload.
_PUBLISH = re.compile(rb"\*3\r\n\$7\r\n(publish)\r\n\$([1-9][0-9]{0,4})\r\n", re.IGNORECASE)
_LAST = re.compile(rb"\r\n\$(0|[1-9][0-9]{0,7})\r\n")


class RedisCodec(Codec):
    """One connection's codec.

    Args:
        side: Whose incoming frames are decoded. Both sides encode every frame.
        kinds: What is made of what comes in.

    Attributes:
        resp3: Whether the answers are RESP3.
    """

    def __init__(self, side: Side = "server", *, resp3: bool = False, kinds: f.Kinds = f.KINDS) -> None:
        self._side: Side = side
        self.resp3 = resp3
        self.kinds = kinds
        self._nothing = kinds.blank()
        self._rest = bytearray()
        self._needed = 0
        self._words: list[bytes] = []
        self._missing = 0  # words of the command that have not come
        self._size = 0  # bytes of the command so far
        self._lost = False

    def fresh(self) -> RedisCodec:
        """A codec of the same settings with nothing in its buffer."""
        return type(self)(self._side, resp3=self.resp3, kinds=self.kinds)

    @property
    def partial(self) -> int:
        """Bytes of a frame that has not arrived whole."""
        return self._size + len(self._rest)

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
        serves = self._side == "server"
        take = self._take if serves else self._take_reply
        try:
            while at < len(unit):
                found = _PUBLISH.match(unit, at) if serves and not self._missing else None
                if found is not None and (publish := _publish_in(unit, found, self.kinds)) is not None:
                    begins, at = at, publish[1]
                    yield publish[0], at - begins
                    continue
                frame, end, needed = take(unit, at)
                if end == at:
                    self._rest += unit[at:]
                    self._needed = needed
                    return
                self._size += end - at
                at = end
                if frame is not None:
                    size, self._size = self._size, 0
                    yield frame, size
        except resp.Garbage as problem:
            self._lost = True
            size, self._size = self._size + len(unit) - at, 0
            yield Malformed(unit[at : at + _EXCERPT], str(problem), "protocol"), size

    # what clients say

    def _take(self, unit: bytes, at: int) -> tuple[Frame | None, int, int]:
        """The next piece of a command: a frame if it is complete, where it ends (at `at`: it does not),
        and how many bytes are needed before another look is worth it."""
        if not self._missing:
            stop = unit.find(b"\n", at)
            if stop < 0 or unit.find(b"\0", at, stop) >= 0:  # Redis looks for the end of a C string
                _check_line(unit, at, len(unit), MAX_INLINE)
                return None, at, len(unit) - at + 1
            _check_line(unit, at, stop, MAX_INLINE + _READ_SIZE)
            line = unit[at:stop].removesuffix(b"\r")
            if line[:1] == b"*":
                count = _length(line[1:], MAX_WORDS, "invalid multibulk length", least=-MAX_WORDS)
                self._missing = max(0, count)
                return (None if self._missing else self._nothing), stop + 1, 0
            words = split_words(line)
            return (frame_of(words, self.kinds) if words else self._nothing), stop + 1, 0
        return self._take_word(unit, at)

    def _take_word(self, unit: bytes, at: int) -> tuple[Frame | None, int, int]:
        if unit[at : at + 1] != b"$":
            raise resp.Garbage(f"expected '$', got '{resp.text(unit[at : at + 1])}'")
        stop = unit.find(b"\n", at)
        if stop < 0:
            if len(unit) - at > MAX_INLINE:
                raise resp.Garbage("too big bulk count string")
            return None, at, len(unit) - at + 1
        size = _length(unit[at + 1 : stop].removesuffix(b"\r"), MAX_BULK, "invalid bulk length")
        end = stop + 1 + size + 2
        if len(unit) < end:
            return None, at, end - at
        self._words.append(unit[stop + 1 : end - 2])
        self._missing -= 1
        if self._missing:
            return None, end, 0
        words, self._words = self._words, []
        return frame_of(words, self.kinds), end, 0

    # what servers say

    def _take_reply(self, unit: bytes, at: int) -> tuple[Frame | None, int, int]:
        try:
            value, end = resp.read(unit, at)
        except resp.Incomplete:
            return None, at, len(unit) - at + 1
        return reply_of(value, self.kinds), end, 0

    # writing

    def encode(self, frame: Frame) -> bytes:
        """The bytes of one frame, as it is.

        Raises:
            WireError: This is no frame of Redis.
        """
        kind = type(frame)
        if kind is self.kinds.message:
            return self._message(frame)  # type: ignore[arg-type]
        if isinstance(frame, f.Reply):
            value = frame.value
            return b":%d\r\n" % value if value.__class__ is int else resp.write(value, resp3=self.resp3)
        writer = _WRITERS.get(kind) or _WRITERS.get(kind.__base__)  # type: ignore[arg-type]
        if writer is not None:
            return resp.command(writer(frame))
        if isinstance(frame, Malformed):
            return frame.data
        if isinstance(frame, f.Blank):
            return b"\r\n"
        if isinstance(frame, f.RedisError):
            return b"-%b\r\n" % resp.raw(frame.text)
        if isinstance(frame, f.Subscribed):
            channel = None if frame.channel is None else resp.raw(frame.channel)
            return self._push(frame.action.encode(), channel, frame.count)
        if isinstance(frame, f.Pmessage):
            return self._push(b"pmessage", resp.raw(frame.pattern), resp.raw(frame.channel), frame.payload)
        if isinstance(frame, f.Smessage):
            return self._push(b"smessage", resp.raw(frame.channel), frame.payload)
        return self.encode_other(frame)

    def encode_other(self, frame: Frame) -> bytes:
        """The bytes of what is no frame of Redis."""
        raise WireError("a frame of Redis", kind_of(frame))

    def _message(self, frame: f.Message) -> bytes:
        channel, payload = resp.raw(frame.channel), frame.payload
        mark = b">" if self.resp3 else b"*"
        sizes = (mark, len(channel), channel, len(payload), payload)
        return b"%b3\r\n$7\r\nmessage\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % sizes

    def _push(self, *values: Any) -> bytes:
        return resp.write(resp.Push(values), resp3=self.resp3)


def _publish_in(unit: bytes, begins: re.Match[bytes], kinds: f.Kinds) -> tuple[Frame, int] | None:
    """A whole PUBLISH and where it ends: what is said most; the long way comes to the same."""
    at, last = begins.end(), begins.end() + int(begins[2])
    middle = _LAST.match(unit, last)
    if middle is None:
        return None
    end = middle.end() + int(middle[1])
    if unit[end : end + 2] != b"\r\n":
        return None
    return kinds.publish(resp.text(unit[at:last]), unit[middle.end() : end], begins[1].decode()), end + 2


def _check_line(unit: bytes, at: int, end: int, limit: int) -> None:
    if end - at > limit:
        many = unit[at : at + 1] == b"*"
        raise resp.Garbage("too big mbulk count string" if many else "too big inline request")


def _length(line: bytes, most: int, complaint: str, least: int = 0) -> int:
    digits = line[1:] if line[:1] == b"-" else line
    plain = digits.isdigit() and len(digits) <= 18 and (digits[:1] != b"0" or line == b"0")
    if not plain or not least <= int(line) <= most:
        raise resp.Garbage(complaint)
    return int(line)


def frame_of(words: list[bytes], kinds: f.Kinds = f.KINDS) -> Frame:
    """The frame of a command; one with the wrong number of arguments is a `Command`."""
    verb, *arguments = words
    name = verb.upper()
    if name == b"PUBLISH" and len(arguments) == 2:
        return kinds.publish(resp.text(arguments[0]), arguments[1], resp.text(verb))
    if name == b"SPUBLISH" and len(arguments) == 2:
        return kinds.spublish(resp.text(arguments[0]), arguments[1], resp.text(verb))
    if name == b"AUTH":
        return f.Auth(tuple(arguments), resp.text(verb))
    if name == b"HELLO":
        version = resp.text(arguments[0]) if arguments else ""
        return f.Hello(version, tuple(arguments[1:]), resp.text(verb))
    listens = _LISTENING.get(name)
    if listens is not None and (arguments or name.endswith(b"UNSUBSCRIBE")):
        return listens(tuple(map(resp.text, arguments)), resp.text(verb))
    return kinds.command(resp.text(verb), tuple(arguments))


def reply_of(value: Any, kinds: f.Kinds = f.KINDS) -> Frame:
    """The frame of what a server says."""
    if isinstance(value, resp.Failure):
        return f.RedisError(str(value))
    if isinstance(value, tuple) and value:
        match value:
            case (b"message", bytes(channel), bytes(payload)):
                return kinds.message(resp.text(channel), payload)
            case (b"smessage", bytes(channel), bytes(payload)):
                return kinds.smessage(resp.text(channel), payload)
            case (b"pmessage", bytes(pattern), bytes(channel), bytes(payload)):
                return kinds.pmessage(resp.text(pattern), resp.text(channel), payload)
            case (
                bytes(action),
                bytes() | None as channel,
                int(count),
            ) if action.upper() in _LISTENING:
                name = None if channel is None else resp.text(channel)
                return f.Subscribed(action.decode(), name, count)
    return kinds.reply(value)


_LISTENING: Mapping[bytes, Callable[[tuple[str, ...], str], Frame]] = {
    b"SUBSCRIBE": f.Subscribe,
    b"PSUBSCRIBE": f.Psubscribe,
    b"SSUBSCRIBE": f.Ssubscribe,
    b"UNSUBSCRIBE": f.Unsubscribe,
    b"SUNSUBSCRIBE": f.Sunsubscribe,
    b"PUNSUBSCRIBE": f.Punsubscribe,
}


def _write_channels(frame: Any) -> list[bytes]:
    return [resp.raw(frame.verb), *map(resp.raw, frame.channels)]


_WRITERS: Mapping[type[Frame], Callable[[Any], list[bytes]]] = {
    f.Command: lambda frame: [resp.raw(frame.verb), *frame.arguments],
    f.Auth: lambda frame: [resp.raw(frame.verb), *frame.arguments],
    f.Hello: lambda frame: [
        resp.raw(frame.verb),
        *([resp.raw(frame.version)] if frame.version else []),
        *frame.options,
    ],
    f.Publish: lambda frame: [resp.raw(frame.verb), resp.raw(frame.channel), frame.payload],
    f.Spublish: lambda frame: [resp.raw(frame.verb), resp.raw(frame.channel), frame.payload],
    f.Ssubscribe: _write_channels,
    f.Sunsubscribe: _write_channels,
    f.Subscribe: _write_channels,
    f.Psubscribe: _write_channels,
    f.Unsubscribe: _write_channels,
    f.Punsubscribe: _write_channels,
}
