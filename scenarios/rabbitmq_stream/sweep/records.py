"""A chunk read by the letter of docs/protocols/rabbitmq-stream.md, 6 and 7; no code of any client.

What a chunk that is damaged, or not for users, holds is nothing: no message of it may be delivered. Where the
length that it names is all that is wrong, its messages are intact.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import error, unpack_from

from conformance.run.facts import Record
from fakebrokers.rabbitmq_stream.chunk import MAGIC, Chunk, ChunkType

DATA, VBIN8, VBIN32 = b"\x00\x53\x75", b"\xa0", b"\xb0"
GZIP_WINDOW = 31
AMQP_DATA = b"\x00\x53\x75"  #: a section of the type data begins (AMQP 1.0, 3.2.6)
MOST_PLAIN = 64 << 20  #: bytes that a batch may announce


def records_of(chunk: Chunk) -> tuple[tuple[Record, ...], bool]:
    """The messages of a chunk, each with its offset, and whether anything of it is damaged."""
    if chunk.magic != MAGIC or chunk.chunk_type != ChunkType.USER or not chunk.crc_ok:
        return (), True
    try:
        rows = list(_entries(chunk))
    except (error, IndexError, ValueError):
        return (), True
    records = tuple(Record(at, body, chunk.timestamp_ms) for at, body in rows if body is not None)
    return records, len(records) < len(rows) or not chunk.length_ok


def wrapped(body: bytes) -> bytes:
    """A message as clients of the format ``amqp`` store it: AMQP 1.0 with one data section."""
    size = len(body)
    head = b"\xa0" + size.to_bytes(1, "big") if size < 256 else b"\xb0" + size.to_bytes(4, "big")
    return AMQP_DATA + head + body


def _entries(chunk: Chunk) -> Iterator[tuple[int, bytes | None]]:
    """Offset and body; None stands for a batch that cannot be opened."""
    data, at, offset = chunk.data, 0, chunk.first_offset
    while at < len(data):
        if data[at] & 0x80:
            kind, count, plain_size, size = unpack_from(">BHII", data, at)
            packed = _exactly(data, at + 11, size)
            at += 11 + size
            if offset + count > chunk.next_offset:
                raise ValueError("a batch holds more than the chunk")
            bodies = _batch(kind >> 4 & 7, count, plain_size, packed)
            yield from enumerate(bodies, offset) if bodies is not None else [(offset, None)]
            offset += count
        else:
            (size,) = unpack_from(">I", data, at)
            yield offset, _exactly(data, at + 4, size)
            at += 4 + size
            offset += 1


def _batch(compression: int, count: int, plain_size: int, packed: bytes) -> list[bytes] | None:
    """The bodies of a sub-entry batch; None if it cannot be opened, or holds another number."""
    plain = packed
    if compression == 1:
        if plain_size > MOST_PLAIN:
            return None
        unpacking = zlib.decompressobj(GZIP_WINDOW)
        try:
            plain = unpacking.decompress(packed, plain_size + 1)
        except zlib.error:
            return None
        if len(plain) != plain_size or not unpacking.eof:
            return None
    elif compression:
        return None
    bodies, at = [], 0
    try:
        while at < len(plain):
            (size,) = unpack_from(">I", plain, at)
            bodies.append(_exactly(plain, at + 4, size))
            at += 4 + size
    except (error, ValueError):
        return None
    return bodies if len(bodies) == count else None


def plain_content(body: bytes) -> bytes:
    """The one data section of an AMQP 1.0 message (part 3, 3.2.6: 0x75, binary); what is none as it is."""
    if body[:4] == DATA + VBIN8 and len(body) == 5 + body[4]:
        return body[5:]
    if body[:4] == DATA + VBIN32 and len(body) == 8 + int.from_bytes(body[4:8]):
        return body[8:]
    return body


def _exactly(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError("it runs over the end")
    return data[at : at + size]
