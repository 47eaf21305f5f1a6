"""The wire types (docs/protocols/rabbitmq-stream.md, 2).

A reader of a field takes a body and a place in it, and returns the value and the place after it. All
integers are big endian.

In what a client sends (requests) strings and arrays have no null, the counts of trailing arrays and maps
mean nothing, and these go on to the end of the frame. In what a server sends (answers) counts are true, and
null is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conformance.decoders import Unreadable

FieldReader = Callable[[bytes, int], tuple[Any, int]]

NULL_16, NULL_32 = 0xFFFF, 0xFFFFFFFF
COUNT = 4  #: bytes of the count of an array
FIRST, OFFSET, TIMESTAMP = 1, 4, 5  #: offset types: the first, and those with a value


def number(width: int, *, signed: bool = False) -> FieldReader:
    """An integer of so many bytes."""

    def read(body: bytes, at: int) -> tuple[int, int]:
        end = at + width
        if end > len(body):
            raise Unreadable(f"expected {width} bytes at byte {at}, the frame ends at {len(body)}")
        return int.from_bytes(body[at:end], signed=signed), end

    return read


u8, u16, u32, u64 = number(1), number(2), number(4), number(8)
i16, i64 = number(2, signed=True), number(8, signed=True)


def _raw(body: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(body):
        raise Unreadable(f"expected {size} bytes at byte {at}, the frame ends at {len(body)}")
    return body[at:end], end


def text(body: bytes, at: int) -> tuple[str, int]:
    """A string that is not null. What is no UTF-8 stays recognisable (surrogates)."""
    size, at = u16(body, at)
    raw, at = _raw(body, at, size)
    return raw.decode("utf-8", "surrogateescape"), at


def nullable_text(body: bytes, at: int) -> tuple[str | None, int]:
    """A string, or null."""
    if body[at : at + 2] == b"\xff\xff":
        return None, at + 2
    return text(body, at)


def answered_text(body: bytes, at: int) -> tuple[str, int]:
    """A string; null is an empty one."""
    value, at = nullable_text(body, at)
    return value or "", at


def nullable_bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes with a size of 32 bits, or null."""
    size, at = u32(body, at)
    return (None, at) if size == NULL_32 else _raw(body, at, size)


def sequence(*items: FieldReader) -> FieldReader:
    """Several fields, one after the other, as a tuple."""

    def read(body: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for item in items:
            value, at = item(body, at)
            values.append(value)
        return tuple(values), at

    return read


def array(item: FieldReader) -> FieldReader:
    """Of an answer: as many as the count says."""

    def read(body: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        count, at = u32(body, at)
        values = []
        for _ in range(0 if count == NULL_32 else count):
            value, at = item(body, at)
            values.append(value)
        return tuple(values), at

    return read


def array_to_end(item: FieldReader) -> FieldReader:
    """Of a request: whatever the count says, up to the end of the frame."""

    def read(body: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        _, at = u32(body, at)
        values = []
        while at < len(body):
            value, at = item(body, at)
            values.append(value)
        return tuple(values), at

    return read


def array_inside(item: FieldReader) -> FieldReader:
    """Of a request, where more follows: as many as the count says, or up to the end of the frame."""

    def read(body: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        count, at = u32(body, at)
        values: list[Any] = []
        while len(values) < count and at < len(body):
            value, at = item(body, at)
            values.append(value)
        return tuple(values), at

    return read


def as_dict(pairs: FieldReader) -> FieldReader:
    """An array of pairs as a dict."""

    def read(body: bytes, at: int) -> tuple[dict[str, Any], int]:
        values, at = pairs(body, at)
        return dict(values), at

    return read


def if_any(field: FieldReader) -> FieldReader:
    """A field that may be absent altogether: None if nothing is left."""

    def read(body: bytes, at: int) -> tuple[Any, int]:
        return field(body, at) if len(body) > at else (None, at)

    return read


request_map = as_dict(array_to_end(sequence(text, text)))
answer_map = as_dict(array(sequence(answered_text, nullable_text)))


def trailing_map(body: bytes, at: int) -> tuple[dict[str, str], int]:
    """The properties after a Subscribe; too few bytes for a count are none."""
    return request_map(body, at) if len(body) - at >= COUNT else ({}, len(body))


def offset_spec(body: bytes, at: int) -> tuple[tuple[int, int | None], int]:
    """Offset type and value; the value is there for the types `OFFSET` and `TIMESTAMP` only."""
    kind, at = u16(body, at)
    if not FIRST <= kind <= TIMESTAMP:
        raise Unreadable(f"there is no offset type {kind}")
    return _with_value(kind, body, at)


def answered_offset_spec(body: bytes, at: int) -> tuple[tuple[int, int | None], int]:
    """The same in the answer to ConsumerUpdate: 0 is none, and some clients send a value with every type."""
    kind, at = u16(body, at)
    if kind > TIMESTAMP:
        raise Unreadable(f"there is no offset type {kind}")
    if kind < OFFSET:  # what follows means nothing
        value = int.from_bytes(body[at:]) if len(body) - at == 8 else None
        return (kind, value), len(body)
    return _with_value(kind, body, at)


def _with_value(kind: int, body: bytes, at: int) -> tuple[tuple[int, int | None], int]:
    if kind < OFFSET:
        return (kind, None), at
    value, at = (u64 if kind == OFFSET else i64)(body, at)
    return (kind, value), at
