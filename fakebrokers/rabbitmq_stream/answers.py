"""What a server does with answers that nobody has asked it for: Close 13, or its process crashes.

A server reads every answer that this protocol has, as a client of its own would. What it can read it finds to
be no command, so it says Close 13; the process crashes where reading fails.
"""

from __future__ import annotations

from collections.abc import Callable

from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.binary import Reader
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType

_TUNE, _ROUTE, _CONSUMER_UPDATE = 0x14, 0x18, 0x1A
_CODE_ALONE, _TUNE_SIZE, _HEAD_SIZE = 10, 12, 8


def answer_crashes(body: bytes, last_command: int, *, tolerant: bool) -> bool:
    """Whether an answer crashes the process that reads it.

    Args:
        body: The frame without its size, with bit 15 of the key.
        last_command: The highest command key that the server knows.
        tolerant: A shape that the server has no rule for is no crash.
    """
    command = int.from_bytes(body[:2], "big") & 0x7FFF
    if body[2:4] != b"\0\1" or len(body) < _HEAD_SIZE:
        return False
    if len(body) == _CODE_ALONE:
        return not 1 <= command <= last_command
    if command == _TUNE and len(body) == _TUNE_SIZE:
        return False
    smallest, read = _SHAPES.get(command, _NONE) if command <= last_command else _NONE
    if command == _ROUTE and last_command < _CONSUMER_UPDATE:  # then it named one stream
        smallest, read = 2, _one_stream
    reader = Reader(body, _HEAD_SIZE)
    if read is None or reader.left < smallest:
        return not tolerant
    try:
        read(reader)
    except WireError:
        return True
    return reader.left > 0 and not tolerant


def _to_the_end(read: Callable[[Reader], object]) -> Callable[[Reader], None]:
    """A code, a count that is not looked at, and items up to the end of the frame."""

    def read_all(reader: Reader) -> None:
        reader.take(6)
        while reader.left:
            read(reader)

    return read_all


def _string(reader: Reader) -> None:
    reader.take(reader.u16())


def _pair(reader: Reader) -> None:
    _string(reader)
    _string(reader)


def _number(reader: Reader) -> None:
    _string(reader)
    reader.u64()


def _versions(reader: Reader) -> None:
    key = reader.u16()
    reader.take(4)
    if not 1 <= key <= 31:
        raise WireError("a command", str(key), reader.pos - 6)


def _metadata(reader: Reader) -> None:
    for _ in range(reader.u32()):
        reader.u16()
        _string(reader)
        reader.u32()
    reader.u32()
    while reader.left:
        _string(reader)
        code = reader.u16()
        if code not in _STREAM_CODES:
            raise WireError("a code of a stream", str(code), reader.pos - 2)
        reader.u16()
        reader.take(2 * reader.u32())


def _challenge(reader: Reader) -> None:
    reader.u16()
    if reader.left:
        _string(reader)
    reader.finish()


def _one_stream(reader: Reader) -> None:
    reader.u16()
    _string(reader)
    reader.finish()


def _offset(reader: Reader) -> None:
    reader.u16()
    kind = reader.u16()
    if kind > OffsetType.TIMESTAMP:
        raise WireError("an offset type of 0 to 5", str(kind), reader.pos - 2)
    if kind in (OffsetType.OFFSET, OffsetType.TIMESTAMP):
        reader.u64()
        reader.finish()
    reader.rest()


def _fixed(size: int) -> Callable[[Reader], object]:
    """One size only; there is no rule for others."""
    return lambda reader: reader.take(size)


_STREAM_CODES = frozenset(
    {Code.OK, Code.STREAM_DOES_NOT_EXIST, Code.STREAM_NOT_AVAILABLE, Code.ACCESS_REFUSED}
)
_NONE: tuple[int, Callable[[Reader], object] | None] = (0, None)

#: by command: smallest size after the correlation id for which there is a rule, and the rule
_SHAPES: dict[int, tuple[int, Callable[[Reader], object] | None]] = {
    0x05: (10, _fixed(10)),
    0x0B: (10, _fixed(10)),
    0x0F: (4, _metadata),
    0x11: (6, _to_the_end(_pair)),
    0x12: (6, _to_the_end(_string)),
    0x13: (2, _challenge),
    0x15: (6, _to_the_end(_pair)),
    0x18: (6, _to_the_end(_string)),
    0x19: (6, _to_the_end(_string)),
    0x1A: (4, _offset),
    0x1B: (6, _to_the_end(_versions)),
    0x1C: (6, _to_the_end(_number)),
    0x1F: (12, _fixed(12)),
}
