"""A chunk read by the letter of docs/protocols/rabbitmq-stream.md, 6 and 7; no code of any client.

What a chunk that is damaged, or not for users, holds is nothing: no message of it may be delivered. Where the
length that it names is all that is wrong, its messages are intact.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.decoders import Unreadable
from conformance.decoders.rabbitmq_stream.messages import (
    MAGIC,
    USER,
    batch_bodies,
    entries_in,
    is_intact,
    names_its_length,
    offset_behind,
)
from conformance.run.facts import Record
from fakebrokers.rabbitmq_stream.frames import Chunk

SECTION, DATA_CODE = b"\x00\x53", 0x75  #: how a section begins, with a descriptor of one byte
FIXED = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}  #: bytes of a value, by the first half of its format code ...
SIZED = {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}  #: ... or bytes of its length
AMQP_DATA = b"\x00\x53\x75"  #: a section of the type data begins (AMQP 1.0, 3.2.6)


def records_of(chunk: Chunk) -> tuple[tuple[Record, ...], bool]:
    """The messages of a chunk, each with its offset, and whether anything of it is damaged."""
    if chunk.magic != MAGIC or chunk.chunk_type != USER or not is_intact(chunk):
        return (), True
    try:
        rows = list(_entries(chunk))
    except (Unreadable, ValueError):
        return (), True
    records = tuple(Record(at, body, chunk.timestamp_ms) for at, body in rows if body is not None)
    return records, len(records) < len(rows) or not names_its_length(chunk)


def wrapped(body: bytes) -> bytes:
    """A message as clients of the format ``amqp`` store it: AMQP 1.0 with one data section."""
    size = len(body)
    head = b"\xa0" + size.to_bytes(1, "big") if size < 256 else b"\xb0" + size.to_bytes(4, "big")
    return AMQP_DATA + head + body


def with_sections(body: bytes) -> bytes:
    """The same with a section of every kind around its data: header, annotations for delivery and message,
    properties, application properties, and a footer (AMQP 1.0, 3.2.1 to 3.2.8)."""
    around = {
        0x70: b"\xc0\x02\x01\x41",  # durable
        0x71: b"\xc1\x01\x00",
        0x72: b"\xc1\x08\x02\xa3\x03x-a\x50\x07",
        0x73: b"\xc0\x09\x03\x53\x05\x40\xa1\x03to1",  # message id, no user id, to
        0x74: b"\xc1\x0c\x04\xa1\x01k\xa1\x01v\xa1\x01n\x54\xff",
    }
    before = b"".join(SECTION + bytes([code]) + value for code, value in around.items())
    return before + wrapped(body) + SECTION + b"\x78\xc1\x01\x00"


def _entries(chunk: Chunk) -> Iterator[tuple[int, bytes | None]]:
    """Offset and body; None stands for a batch that cannot be opened."""
    offset = chunk.first_offset
    for entry in entries_in(chunk.data):
        data = chunk.data[entry.body : entry.end]
        if entry.compression is None:
            yield offset, data
        else:
            if offset + entry.records > offset_behind(chunk):
                raise ValueError("a batch holds more than the chunk")
            bodies = batch_bodies(entry, data)
            yield from enumerate(bodies, offset) if bodies is not None else [(offset, None)]
        offset += entry.records


def plain_content(body: bytes) -> bytes:
    """The one data section of an AMQP 1.0 message (part 3, 3.2.6); what has none, or several, as it is."""
    try:
        found = [value for code, value in _sections(body) if code == DATA_CODE]
    except (IndexError, ValueError):
        return body
    return found[0] if len(found) == 1 else body


def _sections(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Descriptor and value of each section; raises IndexError or ValueError where there is something else."""
    at = 0
    while at < len(body):
        if body[at : at + 2] != SECTION:
            raise ValueError("no section begins here")
        head, end = _value(body, at + 3)
        yield body[at + 2], body[head:end]
        at = end


def _value(body: bytes, at: int) -> tuple[int, int]:
    """Where the bytes of a value begin and end; its format code says how long they are (AMQP 1.0, 1.2)."""
    kind = body[at] >> 4
    if kind in FIXED:
        head, size = at + 1, FIXED[kind]
    elif kind in SIZED:
        head = at + 1 + SIZED[kind]
        size = int.from_bytes(body[at + 1 : head])
    else:
        raise ValueError("no value has this format code")
    if head + size > len(body):
        raise ValueError("a value runs over the end")
    return head, head + size
