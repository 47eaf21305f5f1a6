"""The lines of a journal file: what they hold, how they become bytes, how they are read again.

A file is `MAGIC` and then blocks: four bytes of length, little-endian, and that many bytes of msgpack, an
array of lines. Each line is an array whose first element says what it is. A length of zero, a length beyond
the end, or bytes that are no lines end the file: what a process that was killed left behind. ``SCHEMA.md``
has the rules.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from fakebrokers.errors import UsageError

SCHEMA_VERSION = 1
MAGIC = b"fbjrnl\r" + bytes([SCHEMA_VERSION])
LENGTH = struct.Struct("<I")

#: First elements of the lines, as the writers need them.
FRAME, STATE, OP, EVENT, METRIC, RUN, KIND = range(7)


class FrameLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=FRAME):
    """A frame at a tap.

    Attributes:
        kind: Code of a `KindLine` that came before.
        key: As the frame holds it.
        items: Messages in the frame; 0 where `key` holds one big-endian u64 for each, packed.
        frame: All fields as JSON, if that was asked for.
    """

    at: float
    connection: str
    tap: int
    kind: int
    key: Any
    items: int
    size: int
    status: Any
    fault: str
    scope: Any
    frame: str | None = None


class StateLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=STATE):
    """A connection came, went or changed."""

    at: float
    connection: str
    what: str
    note: str
    fault: str


class OpLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=OP):
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


class EventLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=EVENT):
    """The client told something unasked."""

    at: float
    process: str
    what: str
    note: str


class MetricLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=METRIC):
    """A measurement of the harness."""

    at: float
    name: str
    value: float


class RunLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=RUN):
    """Attributes of the run; later ones replace earlier ones of the same name."""

    attributes: dict[str, Any]


class KindLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=KIND):
    """From here on `code` stands for this kind of frame."""

    code: int
    name: str
    role: str


Line = FrameLine | StateLine | OpLine | EventLine | MetricLine | RunLine | KindLine

ENCODER = msgspec.msgpack.Encoder(enc_hook=str)
UNENCODABLE = (OverflowError, UnicodeEncodeError)
_decoder: msgspec.msgpack.Decoder[list[Line]] = msgspec.msgpack.Decoder(list[Line])


def encode(lines: Sequence[tuple[Any, ...]]) -> bytes:
    """A block. What msgpack cannot hold (a huge integer, half a surrogate) becomes text."""
    try:
        return ENCODER.encode(lines)
    except UNENCODABLE:
        return ENCODER.encode(_plain(lines))


def decode(block: bytes) -> list[Line]:
    """The lines of a block. Raises `msgspec.MsgspecError` if it is none."""
    return _decoder.decode(block)


def split(content: bytes | mmap.mmap, name: str) -> tuple[list[Line], bool]:
    """All lines of a file, and whether it ends torn.

    Raises:
        UsageError: It is no journal file, or one of another version.
    """
    head = content[: len(MAGIC)]
    if head != MAGIC and MAGIC.startswith(head.rstrip(b"\0")):
        return [], True  # killed before the first line
    if head[:-1] != MAGIC[:-1]:
        raise UsageError(f"{name}: expected a journal file, got bytes that begin with {head!r}")
    version = head[-1]
    if version != SCHEMA_VERSION:
        raise UsageError(f"{name}: expected a journal of version {SCHEMA_VERSION}, got version {version}")
    lines: list[Line] = []
    at, size = len(MAGIC), len(content)
    while at + LENGTH.size < size:
        length = LENGTH.unpack_from(content, at)[0]
        start = at + LENGTH.size
        if length == 0 or start + length > size:
            return lines, True
        try:
            lines += decode(content[start : start + length])
        except msgspec.MsgspecError:
            return lines, True
        at = start + length
    return lines, at < size


def _plain(field: Any) -> Any:
    if isinstance(field, list | tuple):
        return [_plain(item) for item in field]
    if isinstance(field, int) and not -(1 << 63) <= field < 1 << 64:
        return str(field)
    return field.encode("utf-8", "backslashreplace").decode() if isinstance(field, str) else field
