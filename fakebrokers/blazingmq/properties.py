"""Message properties in both styles, and compression (docs/protocols/blazingmq.md, 2.2).

The old style (schema id 0) has the lengths of values, and compresses properties and payload together. The
new style has the places of the properties in the area, and compresses the payload alone. The Node SDK sends a
schema id with lengths, and compresses both: that is read as well (`Style.MIXED`).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from enum import Enum, IntEnum
from struct import Struct, error
from typing import NamedTuple

from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.events import padded, unpadded
from fakebrokers.errors import WireError

#: Sizes of headers, area words (upper 8, lower 16 bits), 0, number of properties
_HEADER = Struct(">BBHBB")
_PROPERTY = Struct(">HHH")
_HEADER_SIZES = 0x1B
_SIZE_BITS = 0x3F  #: of that byte; the others are reserved, and nobody reads them
MAX_NAME = 4095
#: A new style without a schema that could be used again.
NO_SCHEMA = 1
#: Most bytes that a compressed message may become.
MAX_INFLATED = 64 * 1024 * 1024


class PropertyType(IntEnum):
    """What a value is."""

    BOOL = 1
    CHAR = 2
    SHORT = 3
    INT32 = 4
    INT64 = 5
    STRING = 6
    BINARY = 7


class Style(Enum):
    """How properties are written."""

    OLD = "lengths"
    NEW = "places"
    MIXED = "lengths under a schema id"


class Property(NamedTuple):
    """A value with its type. CHAR is an int, STRING a str, BINARY bytes."""

    type: PropertyType
    value: bool | int | str | bytes


class Content(NamedTuple):
    """What a message carries."""

    payload: bytes
    properties: Mapping[str, Property] = {}


_SIZES = {
    PropertyType.BOOL: Struct(">?"),
    PropertyType.CHAR: Struct(">B"),
    PropertyType.SHORT: Struct(">h"),
    PropertyType.INT32: Struct(">i"),
    PropertyType.INT64: Struct(">q"),
}


def write_content(content: Content, style: Style, compression: Compression) -> bytes:
    """The data of a message."""
    area = write_properties(content.properties, style) if content.properties else b""
    if compression is Compression.NONE:
        return area + content.payload
    if style is Style.NEW:
        return area + zlib.compress(content.payload)
    return zlib.compress(area + content.payload)


def read_content(data: bytes, *, has_properties: bool, schema_id: int, compression: int) -> Content:
    """Properties and payload of a message.

    Raises:
        WireError: They cannot be read.
    """
    if compression not in (Compression.NONE, Compression.ZLIB):
        raise WireError("a compression of 0 or 1", str(compression))
    packed = compression == Compression.ZLIB
    if not has_properties:
        return Content(inflate(data) if packed else data)
    if packed and (schema_id == 0 or not data or data[0] & _SIZE_BITS != _HEADER_SIZES):
        data, packed = inflate(data), False
    properties, size = read_properties(data, places=schema_id != 0)
    payload = data[size:]
    return Content(inflate(payload) if packed else payload, properties)


def inflate(data: bytes) -> bytes:
    """The data of a zlib stream.

    Raises:
        WireError: It is none, or not whole, or larger than a broker inflates.
    """
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED)
    except zlib.error as problem:
        raise WireError("data that zlib has compressed", str(problem)) from None
    if not inflater.eof:
        raise WireError("a whole zlib stream of at most 64 MiB", f"{len(inflated)} bytes without an end")
    return inflated


def write_properties(properties: Mapping[str, Property], style: Style) -> bytes:
    """The area of properties, in the order of the mapping.

    Raises:
        WireError: A value does not fit its type, or a name is too long.
    """
    headers, pairs = [], b""
    for name, (kind, value) in properties.items():
        label, content = name.encode(errors="surrogateescape"), _pack_value(kind, value)
        if not 0 < len(label) <= MAX_NAME:
            raise WireError(f"a name of 1 to {MAX_NAME} bytes", f"{len(label)} bytes")
        number = len(pairs) if style is Style.NEW else len(content)
        headers.append(_PROPERTY.pack(kind << 10 | number >> 16, number & 0xFFFF, len(label)))
        pairs += label + content
    area = padded(bytes(_HEADER.size) + b"".join(headers) + pairs)
    words = len(area) // 4
    return _HEADER.pack(_HEADER_SIZES, words >> 16, words & 0xFFFF, 0, len(headers)) + area[_HEADER.size :]


def _pack_value(kind: PropertyType, value: bool | int | str | bytes) -> bytes:
    try:
        if kind is PropertyType.STRING:
            return str(value).encode(errors="surrogateescape")
        return bytes(value) if isinstance(value, bytes) else _SIZES[kind].pack(value)
    except (error, KeyError, TypeError) as problem:
        raise WireError(f"a value of type {kind.name}", f"{value!r}: {problem}") from None


def read_properties(data: bytes, *, places: bool) -> tuple[dict[str, Property], int]:
    """The properties at the beginning of a message, and the size of their area in bytes.

    Raises:
        WireError: They cannot be read.
    """
    if len(data) < _HEADER.size:
        raise WireError(f"properties of at least {_HEADER.size} bytes", f"{len(data)} bytes", 0)
    sizes, upper, lower, _, count = _HEADER.unpack_from(data)
    header, each, size = 2 * (sizes & 7), 2 * (sizes >> 3 & 7), 4 * (upper << 16 | lower)
    start = header + count * each
    if header < _HEADER.size or each < _PROPERTY.size or not count or not start < size <= len(data):
        raise WireError(f"an area of {start + 1} to {len(data)} bytes", f"{size}", 0)
    rows = [_PROPERTY.unpack_from(data, header + each * number) for number in range(count)]
    pairs = unpadded(data[start:size], start)
    if places and (rows[0][0] & 0x3FF or rows[0][1]):
        places = False  # the first place is 0 by rule: these are lengths
    found: dict[str, Property] = {}
    at = 0
    for number, (first, second, name_size) in enumerate(rows):
        length = (first & 0x3FF) << 16 | second
        end = _end(rows, number, len(pairs)) if places else at + name_size + length
        if not at + name_size <= end <= len(pairs):
            raise WireError(f"a property within {len(pairs) - at} bytes", f"{end - at} bytes", start + at)
        name = pairs[at : at + name_size].decode(errors="surrogateescape")
        found[name] = _read_value(first >> 10 & 0x1F, pairs[at + name_size : end])
        at = end
    return found, size


def _end(rows: list[tuple[int, int, int]], number: int, size: int) -> int:
    """Where a property ends: where the next one begins."""
    if number + 1 == len(rows):
        return size
    first, second, _ = rows[number + 1]
    return (first & 0x3FF) << 16 | second


def _read_value(number: int, content: bytes) -> Property:
    try:
        kind = PropertyType(number)
        if kind is PropertyType.STRING:
            return Property(kind, content.decode(errors="surrogateescape"))
        if kind is PropertyType.BINARY:
            return Property(kind, content)
        return Property(kind, _SIZES[kind].unpack(content)[0])
    except (ValueError, error) as problem:
        raise WireError(
            "a value that fits its type", f"type {number}, {len(content)} bytes: {problem}"
        ) from None
