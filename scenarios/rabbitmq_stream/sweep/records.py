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

DATA, VBIN8, VBIN32 = b"\x00\x53\x75", b"\xa0", b"\xb0"
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
    """The one data section of an AMQP 1.0 message (part 3, 3.2.6: 0x75, binary); what is none as it is."""
    if body[:4] == DATA + VBIN8 and len(body) == 5 + body[4]:
        return body[5:]
    if body[:4] == DATA + VBIN32 and len(body) == 8 + int.from_bytes(body[4:8]):
        return body[8:]
    return body
