"""What a message carries: options, properties and payload (docs/protocols/blazingmq.md, 2.1 and 2.2)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from struct import Struct
from typing import Any, NamedTuple

from conformance.decoders import Unreadable
from conformance.decoders.blazingmq.padding import unpadded

WORD = 4
NUMBERS, INFOS = 1, 3  #: types of options: numbers of subscriptions, alone or with delivery attempts
INFO_WORDS = 2  #: of a number with attempts
NOT_COMPRESSED, ZLIB = 0, 1
DEFAULT = 0  #: the subscription of a message without options
AREA_HEAD = PROPERTY_HEAD = 6  #: bytes
LONGEST_NAME = 4095  #: bytes
LARGEST = 64 << 20  #: bytes of what is compressed

_PROPERTY = Struct(">HHH")

#: What properties are called in the adapter protocol, and how many bytes their values have.
TYPES: Mapping[int, tuple[str, int | None]] = {
    1: ("bool", 1),
    2: ("char", 1),
    3: ("short", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("string", None),
    7: ("binary", None),
}


class MessageProperty(NamedTuple):
    """A value with its type; char and binary are bytes."""

    type: str
    value: Any


class MessageContent(NamedTuple):
    """What an application has sent."""

    payload: bytes
    properties: Mapping[str, MessageProperty] = {}


def subscriptions_in(options: bytes) -> set[int]:
    """The numbers of the subscriptions that a PUSH is for. Raises `Unreadable`."""
    found: set[int] = set()
    at = 0
    while at < len(options):
        head = int.from_bytes(options[at : at + WORD])
        kind, is_packed = head >> 26, bool(head >> 25 & 1)
        size = WORD if is_packed else WORD * (head & 0x1FFFFF)
        content = options[at + WORD : at + size]
        if size < WORD or at + size > len(options):
            raise Unreadable(f"expected an option that ends at byte {len(options)}, came {size} bytes")
        if kind == INFOS and is_packed:
            found.add(DEFAULT)
        elif kind == NUMBERS or (kind == INFOS and head >> 21 & 15 == INFO_WORDS):
            step = WORD if kind == NUMBERS else WORD * INFO_WORDS
            starts = range(0, len(content) // step * step, step)
            found |= {int.from_bytes(content[start : start + WORD]) for start in starts}
        at += size
    return found or {DEFAULT}


def content_in(data: bytes, *, has_properties: bool, schema_id: int, compression: int) -> MessageContent:
    """Properties and payload. Raises `Unreadable`.

    In the old style, without a schema id, properties and payload are compressed together, and properties have
    the lengths of values. In the new one the payload is compressed alone, and properties have places. The
    Node SDK has a schema id and does everything else as in the old style.
    """
    if compression not in (NOT_COMPRESSED, ZLIB):
        raise Unreadable(f"there is no compression {compression}")
    is_compressed = compression == ZLIB
    if not has_properties:
        return MessageContent(_inflated(data) if is_compressed else data)
    if not schema_id:
        plain = _inflated(data) if is_compressed else data
        properties, size = _properties(plain, has_places=False)
        return MessageContent(plain[size:], properties)
    if is_compressed:
        try:
            plain = _inflated(data)
        except Unreadable:
            pass
        else:
            properties, size = _properties(plain, has_places=False)
            return MessageContent(plain[size:], properties)
    properties, size = _properties(data, has_places=True)
    return MessageContent(_inflated(data[size:]) if is_compressed else data[size:], properties)


def _inflated(data: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, LARGEST)
    except zlib.error as problem:
        raise Unreadable(f"expected a zlib stream: {problem}") from None
    if not unpacking.eof:
        raise Unreadable(f"expected a whole zlib stream of at most {LARGEST} bytes")
    return plain


def _properties(data: bytes, *, has_places: bool) -> tuple[dict[str, MessageProperty], int]:
    """The properties at the beginning, and the bytes of their area.

    Args:
        has_places: Whether they have the places of their names, if the first one is at the beginning.
    """
    if len(data) < AREA_HEAD:
        raise Unreadable(f"expected properties, came {len(data)} bytes")
    head_size, row_size = 2 * (data[0] & 7), 2 * (data[0] >> 3 & 7)
    area_size, count = WORD * int.from_bytes(data[1:4]), data[5]
    start = head_size + count * row_size
    if head_size < AREA_HEAD or row_size < PROPERTY_HEAD or not count or not start < area_size <= len(data):
        raise Unreadable(f"expected an area of properties, came {data[:AREA_HEAD].hex()}")
    area = unpadded(data[:area_size])
    rows = [_PROPERTY.unpack_from(data, head_size + row_size * number) for number in range(count)]
    lengths = [(first & 0x3FF) << 16 | second for first, second, _ in rows]
    names = [third for _, _, third in rows]
    if has_places and lengths[0] == 0:
        ends = [*lengths[1:], len(area) - start]
        lengths = [end - place - name for place, end, name in zip(lengths, ends, names, strict=True)]
    found = {}
    at = start
    for (first, _, _), name_size, size in zip(rows, names, lengths, strict=True):
        if name_size > LONGEST_NAME or size < 0 or at + name_size + size > len(area):
            raise Unreadable(f"expected a property at byte {at} that ends at byte {len(area)}")
        name = area[at : at + name_size].decode("utf-8", "surrogateescape")
        found[name] = _value(first >> 10 & 31, area[at + name_size : at + name_size + size])
        at += name_size + size
    return found, area_size


def _value(number: int, content: bytes) -> MessageProperty:
    if number not in TYPES:
        raise Unreadable(f"there is no type {number} of properties")
    name, size = TYPES[number]
    if size not in (None, len(content)):
        raise Unreadable(f"expected {size} bytes for {name}, came {len(content)}")
    if name == "bool":
        return MessageProperty(name, content != b"\0")
    if name == "string":
        return MessageProperty(name, content.decode("utf-8", "surrogateescape"))
    if name in ("char", "binary"):
        return MessageProperty(name, content)
    return MessageProperty(name, int.from_bytes(content, signed=True))
