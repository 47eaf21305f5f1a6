"""The lines of a journal file: what they hold, how they become bytes, how they are read again.

A file is `MAGIC` and then lines: four bytes of length, little-endian, and that many bytes of msgpack.
Each line is an array whose first element says what it is. A length of zero, a length beyond the end, or
bytes that are no line end the file: what a process that was killed left behind. ``SCHEMA.md`` has the rules.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from fakebrokers.errors import UsageError

SCHEMA_VERSION = 1
MAGIC = b"fbjrnl\r" + bytes([SCHEMA_VERSION])
LENGTH = struct.Struct("<I")

#: First elements of the lines, as the writers need them.
FRAME, STATE, OP, EVENT, METRIC, RUN = range(6)


class FrameLine(msgspec.Struct, frozen=True, array_like=True, tag=FRAME):
    """A frame at a tap. `items` of 0 means that `key` is a run of big-endian u64, one per item."""

    at: float
    connection: str
    tap: int
    kind: str
    role: str
    key: Any
    items: int
    size: int
    status: int | None
    fault: str
    scope: Any
    frame: str | None = None


class StateLine(msgspec.Struct, frozen=True, array_like=True, tag=STATE):
    """A connection came, went or changed."""

    at: float
    connection: str
    what: str
    note: str
    fault: str


class OpLine(msgspec.Struct, frozen=True, array_like=True, tag=OP):
    """An operation of the client began or ended."""

    at: float
    process: str
    op_id: int | None
    f: str
    outcome: str
    key: str | None
    value: str | None
    offset: int | None
    wire_key: str | None
    error: str | None
    note: str


class EventLine(msgspec.Struct, frozen=True, array_like=True, tag=EVENT):
    """The client told something unasked."""

    at: float
    process: str
    what: str
    note: str


class MetricLine(msgspec.Struct, frozen=True, array_like=True, tag=METRIC):
    """A measurement of the harness."""

    at: float
    name: str
    value: float


class RunLine(msgspec.Struct, frozen=True, array_like=True, tag=RUN):
    """Attributes of the run; later ones replace earlier ones of the same name."""

    attributes: dict[str, Any]


Line = FrameLine | StateLine | OpLine | EventLine | MetricLine | RunLine

_encoder = msgspec.msgpack.Encoder(enc_hook=str)
_decoder: msgspec.msgpack.Decoder[Line] = msgspec.msgpack.Decoder(Line)


def encode(line: tuple[Any, ...]) -> bytes:
    """The msgpack of a line. What msgpack cannot hold (a huge integer, half a surrogate) becomes text."""
    try:
        return _encoder.encode(line)
    except (OverflowError, UnicodeEncodeError):
        return _encoder.encode([_plain(field) for field in line])


def decode(data: bytes) -> Line:
    """One line. Raises `msgspec.MsgspecError` if it is none."""
    return _decoder.decode(data)


def split(content: bytes, name: str) -> tuple[list[Line], bool]:
    """All lines of a file, and whether it ends torn.

    Raises:
        UsageError: It is no journal file, or one of another version.
    """
    if not content.startswith(MAGIC[:-1]):
        if MAGIC.startswith(content.rstrip(b"\0")):
            return [], True  # killed before the first line
        raise UsageError(f"{name}: expected a journal file, got bytes that begin with {content[:8]!r}")
    version = content[len(MAGIC) - 1]
    if version != SCHEMA_VERSION:
        raise UsageError(f"{name}: expected a journal of version {SCHEMA_VERSION}, got version {version}")
    lines: list[Line] = []
    for start, end in _spans(content):
        try:
            lines.append(_decoder.decode(content[start:end]))
        except msgspec.MsgspecError:
            return lines, True
    end = end if lines else len(MAGIC)
    return lines, end < len(content)


def _spans(content: bytes) -> Iterator[tuple[int, int]]:
    at, size = len(MAGIC), len(content)
    while at + LENGTH.size < size:
        length = LENGTH.unpack_from(content, at)[0]
        start = at + LENGTH.size
        at = start + length
        if length == 0 or at > size:
            return
        yield start, at


def _plain(field: Any) -> Any:
    if isinstance(field, list | tuple):
        return [_plain(item) for item in field]
    if isinstance(field, int) and not -(1 << 63) <= field < 1 << 64:
        return str(field)
    return field.encode("utf-8", "backslashreplace").decode() if isinstance(field, str) else field
