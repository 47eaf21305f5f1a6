"""Values of RESP to bytes and back (https://redis.io/docs/latest/develop/reference/protocol-spec/)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Incomplete(Exception):
    """More bytes are needed."""


class Garbage(ValueError):
    """Bytes that are no value; the text is what Redis would say."""


class Failure(str):
    """The text of an error reply."""

    __slots__ = ()


class NullArray:
    """Nothing where an array would be; RESP3 has one nothing for all."""


NULL_ARRAY = NullArray()


class Waits:
    """Stands for the answer of a command that has to wait; never written."""


WAITS = Waits()


class Push(tuple[Any, ...]):
    """What the server says unasked (RESP3)."""

    __slots__ = ()


def text(data: bytes) -> str:
    """Bytes as text that can be turned back."""
    return data.decode("utf-8", "surrogateescape")


def raw(value: str) -> bytes:
    """Text back to bytes."""
    return value.encode("utf-8", "surrogateescape")


def bulk(data: bytes) -> bytes:
    """A bulk string."""
    return b"$%d\r\n%b\r\n" % (len(data), data)


def command(words: list[bytes]) -> bytes:
    """A command as clients send it."""
    return b"*%d\r\n" % len(words) + b"".join(map(bulk, words))


def write(value: Any, *, resp3: bool) -> bytes:
    """The bytes of a value."""
    match value:
        case None | NullArray():
            return b"_\r\n" if resp3 else b"*-1\r\n" if value else b"$-1\r\n"
        case bool():
            return (b"#t\r\n" if value else b"#f\r\n") if resp3 else b":%d\r\n" % value
        case int():
            return b":%d\r\n" % value
        case float():
            return b",%.17g\r\n" % value if resp3 else bulk(b"%.17g" % value)
        case Failure():
            return b"-%b\r\n" % raw(value)
        case str():
            return b"+%b\r\n" % raw(value)
        case bytes():
            return bulk(value)
        case Mapping():
            parts = [write(part, resp3=resp3) for pair in value.items() for part in pair]
            return (b"%%%d\r\n" % len(value) if resp3 else b"*%d\r\n" % len(parts)) + b"".join(parts)
    mark = b">" if resp3 and isinstance(value, Push) else b"*"
    return b"%b%d\r\n" % (mark, len(value)) + b"".join([write(each, resp3=resp3) for each in value])


def read(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    """The value at a place, and where it ends.

    Raises:
        Incomplete: It does not end.
        Garbage: There is none.
    """
    if depth > 16:
        raise Garbage("nested too deeply")
    stop = data.find(b"\r\n", at)
    if stop < 0:
        raise Incomplete
    mark, line, end = data[at : at + 1], data[at + 1 : stop], stop + 2
    match mark:
        case b"+":
            return text(line), end
        case b"-":
            return Failure(text(line)), end
        case b":":
            return _number(line), end
        case b"_":
            return None, end
        case b",":
            return _double(line), end
        case b"#":
            return line == b"t", end
        case b"$":
            return _read_bulk(data, _number(line), end)
        case b"*" | b">" | b"%":
            return _read_many(data, mark, _number(line), end, depth)
    raise Garbage(f"expected a value, got {mark!r}")


def _number(line: bytes) -> int:
    digits = line[1:] if line[:1] == b"-" else line
    if not digits.isdigit() or len(digits) > 19:
        raise Garbage(f"expected a number, got {line[:20]!r}")
    return int(line)


def _double(line: bytes) -> float:
    try:
        return float(line)
    except ValueError:
        raise Garbage(f"expected a number, got {line[:20]!r}") from None


def _read_bulk(data: bytes, size: int, at: int) -> tuple[Any, int]:
    if size < 0:
        return None, at
    if len(data) < at + size + 2:
        raise Incomplete
    if data[at + size : at + size + 2] != b"\r\n":
        raise Garbage("expected CR LF after a bulk string")
    return data[at : at + size], at + size + 2


def _read_many(data: bytes, mark: bytes, count: int, at: int, depth: int) -> tuple[Any, int]:
    if count < 0:
        return None, at
    values = []
    for _ in range(count * 2 if mark == b"%" else count):
        value, at = read(data, at, depth + 1)
        values.append(value)
    if mark == b"%":
        return dict(zip(map(_hashable, values[::2]), values[1::2], strict=True)), at
    return (Push(values) if mark == b">" else tuple(values)), at


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, dict | tuple) else value
