"""The lines of a journal file: what they hold, how they become bytes, how they are read again.

A file is `MAGIC` and then blocks: four bytes of length, little-endian, and that many bytes of msgpack, an
array of lines. Each line is an array whose first element says what it is. A length of zero, a length beyond
the end, or bytes that are no lines end the file: what a process that was killed left behind. ``SCHEMA.md``
has the rules.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from fakebrokers.errors import UsageError

SCHEMA_VERSION = 2
SCHEMA_MINOR = 2  #: counts what was added to this version: files without it are read as if it were not told
#: Versions that can be read; see `convert`.
READABLE = (1, SCHEMA_VERSION)
MAGIC = b"fbjrnl\r" + bytes([SCHEMA_VERSION])
LENGTH = struct.Struct("<I")

#: First elements of the lines, as the writers need them.
FRAME, STATE, OP, EVENT, METRIC, RUN, KIND, PASSED = range(8)


class FrameLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=FRAME):
    """A frame at a tap, or those of its items that share role, status and scope.

    Attributes:
        kind: Code of a `KindLine` that came before.
        key: As the frame holds it.
        items: Messages in the frame; 0 where `key` holds their keys packed.
        frame: All fields as JSON, if that was asked for.
        envelope: Kind of the frame that it was inside of.
        part: Of a frame that is several lines: which of them, from 0.
        role: If it is not that of the kind.
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
    envelope: str | None = None
    part: int = 0
    role: str | None = None


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
    """The client reported something unasked."""

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
    """From here on `code` stands for this kind of frame.

    Attributes:
        role: By direction, where it depends on that.
        keys: The `KeyType` of its keys; empty where it has none, and in files of version 1.
        batch: Frames of this kind have items.
    """

    code: int
    name: str
    role: str | dict[str, str]
    keys: str = ""
    batch: bool = False


class TraceLine(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=PASSED):
    """One thing that passed, as it was, between client and broker or client and runner: see `TracedRow`."""

    at: float
    what: str
    connection: str
    data: bytes


Line = FrameLine | StateLine | OpLine | EventLine | MetricLine | RunLine | KindLine | TraceLine

ENCODER = msgspec.msgpack.Encoder(enc_hook=str)
UNENCODABLE = (OverflowError, UnicodeEncodeError)
_KINDS: tuple[type[Line], ...] = (
    FrameLine,
    StateLine,
    OpLine,
    EventLine,
    MetricLine,
    RunLine,
    KindLine,
    TraceLine,
)
_decoder: msgspec.msgpack.Decoder[list[Line]] = msgspec.msgpack.Decoder(list[Line])


def encode(lines: Sequence[tuple[Any, ...]]) -> bytes:
    """A block. What msgpack cannot hold (a huge integer, half a surrogate) becomes text."""
    try:
        return ENCODER.encode(lines)
    except UNENCODABLE:
        return ENCODER.encode(_plain(lines))


def decode(block: bytes) -> list[Line]:
    """The lines of a block. A value that does not fit its field costs that value, not the line.

    Raises:
        msgspec.MsgspecError: It is no block.
    """
    try:
        return _decoder.decode(block)
    except msgspec.ValidationError:
        lines = msgspec.msgpack.decode(block, type=list[Any])
        return [line for line in map(mended, lines) if line is not None]


def split(content: bytes | mmap.mmap, name: str) -> tuple[int, list[Line], bool]:
    """Version of a file, all its lines, and whether it ends torn.

    Raises:
        UsageError: It is no journal file, or one of a version that cannot be read.
    """
    torn: list[bool] = []
    lines = [line for block in blocks(content, name, lambda: torn.append(True)) for line in block]
    return version_of_file(content, name), lines, bool(torn)


def version_of_file(content: bytes | mmap.mmap, name: str) -> int:
    """The version that wrote a file.

    Raises:
        UsageError: It is no journal file, or one of a version that cannot be read.
    """
    head = content[: len(MAGIC)]
    if head != MAGIC and MAGIC.startswith(head.rstrip(b"\0")):
        return SCHEMA_VERSION  # killed before the first line
    if head[:-1] != MAGIC[:-1]:
        raise UsageError(f"{name}: expected a journal file, got bytes that begin with {head!r}")
    version = head[-1]
    if version not in READABLE:
        raise UsageError(
            f"{name}: expected a journal of version 1 or {SCHEMA_VERSION}, got version {version}"
        )
    return version


def blocks(content: bytes | mmap.mmap, name: str, torn: Callable[[], object]) -> Iterator[list[Line]]:
    """The lines of a file, block by block.

    Args:
        torn: Called if the file ends torn.

    Raises:
        UsageError: See `version_of_file`.
    """
    version_of_file(content, name)
    at, size = len(MAGIC), len(content)
    if size < at or content[at - 1] == 0:  # killed before the first line
        torn()
        return
    while at + LENGTH.size < size:
        length = LENGTH.unpack_from(content, at)[0]
        start = at + LENGTH.size
        if length == 0 or start + length > size:
            torn()
            return
        try:
            lines = decode(content[start : start + length])
        except msgspec.MsgspecError:
            torn()
            return
        yield lines
        at = start + length
    if at < size:
        torn()


def mended(raw: Any) -> Line | None:
    """A line whose values do not all fit their fields; None if what it says is lost with them.

    A text takes any value as its text. Any other field is left empty, and the line's note names the value.
    """
    if not isinstance(raw, list) or not raw or type(raw[0]) is not int or raw[0] not in range(len(_KINDS)):
        return None
    kind = _KINDS[raw[0]]
    names = kind.__struct_fields__
    values = dict(zip(names, raw[1:], strict=False))
    lost = []
    for field in msgspec.structs.fields(kind):
        value = values.get(field.name)
        if field.name not in values or fits(value, field.type):
            continue
        if fits("", field.type):
            values[field.name] = str(value)
        else:
            values[field.name] = None
            lost.append(unfit(field.name, value))
    if lost and "note" in values:
        values["note"] = noted(values["note"], *lost)
    try:
        return msgspec.convert([raw[0], *values.values()], kind)
    except msgspec.ValidationError:
        return None


def unfit(name: str, value: Any) -> str:
    """The note on a value that a column cannot hold."""
    return f"{name} {str(value)[:80]} does not fit"


def noted(*notes: str) -> str:
    """Notes in one text."""
    return "; ".join(filter(None, notes))


def fits(value: Any, kind: Any) -> bool:
    """Whether a field of this type can hold the value."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _plain(field: Any) -> Any:
    if isinstance(field, list | tuple):
        return [_plain(item) for item in field]
    if isinstance(field, dict):
        return {_plain(name): _plain(value) for name, value in field.items()}
    if isinstance(field, int) and not -(1 << 63) <= field < 1 << 64:
        return str(field)
    return field.encode("utf-8", "backslashreplace").decode() if isinstance(field, str) else field
