"""Publish, Deliver, and the entries and chunks in them (docs/protocols/rabbitmq-stream.md, 3, 6 and 7)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import NamedTuple

from conformance.decoders import Unreadable
from conformance.decoders.rabbitmq_stream.fields import nullable_text
from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.frames import Chunk, Deliver, Publish

MAGIC = 0x50  #: first byte of a chunk: magic 5, version 0
USER = 0  #: type of a chunk with messages
ID = 8  #: bytes of a publishing id
SIMPLE = 4  #: bytes in front of the body of a simple entry
BATCH = 11  #: bytes in front of the data of a sub-entry batch
NONE, GZIP = 0, 1  #: compressions of a batch that can be opened
MOST_PLAIN = 64 << 20  #: bytes that a batch may announce
GZIP_WINDOW = 31
CHUNK = 48  #: bytes in front of the data of a chunk

_HEAD = Struct(">BI")  #: publisher id, count
_BATCH_HEAD = Struct(">xHII")  #: records, uncompressed size, size of the data
_CHUNK_HEAD = Struct(">BBHIqQQIIIB3x")


class Entry(NamedTuple):
    """Where an entry lies, and what it says of itself.

    Attributes:
        compression: Of a sub-entry batch, see section 6; None: it is a simple entry.
        records: Messages; of a batch as its header claims.
        plain_size: Of a batch: bytes of its data before compression.
        start, body, end: The entry begins, its body or data begins, and it ends.
    """

    compression: int | None
    records: int
    plain_size: int
    start: int
    body: int
    end: int


def entry_at(data: bytes, at: int) -> Entry:
    """The entry that begins here. Raises `Unreadable` if it is not whole."""
    room = len(data) - at
    is_batch = room > 0 and bool(data[at] & 0x80)
    head = BATCH if is_batch else SIMPLE
    if room < head:
        raise Unreadable(f"expected the head of an entry at byte {at}, {room} bytes are left")
    if is_batch:
        records, plain_size, size = _BATCH_HEAD.unpack_from(data, at)
        found = Entry(data[at] >> 4 & 7, records, plain_size, at, at + head, at + head + size)
    else:
        size = int.from_bytes(data[at : at + head])
        found = Entry(None, 1, size, at, at + head, at + head + size)
    if found.end > len(data):
        raise Unreadable(f"expected an entry of {size} bytes at byte {at}, {room - head} are left")
    return found


def entries_in(data: bytes) -> Iterator[Entry]:
    """The entries that lie back to back. Raises `Unreadable` at one that is not whole."""
    at = 0
    while at < len(data):
        entry = entry_at(data, at)
        yield entry
        at = entry.end


def whole_entries(data: bytes) -> list[Entry]:
    """The same up to the first that is not whole."""
    found: list[Entry] = []
    with suppress(Unreadable):
        found.extend(entries_in(data))
    return found


def batch_bodies(entry: Entry, data: bytes) -> list[bytes] | None:
    """The bodies in the data of a sub-entry batch.

    None if it cannot be opened (of compressions, gzip can), or holds not as much as its header says.
    """
    plain: bytes | None = data
    if entry.compression == GZIP:
        plain = _inflated(data, entry.plain_size) if entry.plain_size <= MOST_PLAIN else None
    if plain is None or entry.compression not in (NONE, GZIP):
        return None
    try:
        inner = list(_simple_entries_in(plain))
    except Unreadable:
        return None
    return [plain[each.body : each.end] for each in inner] if len(inner) == entry.records else None


def _simple_entries_in(data: bytes) -> Iterator[Entry]:
    for entry in entries_in(data):
        if entry.compression is not None:
            raise Unreadable("a batch in a batch")
        yield entry


def _inflated(data: bytes, size: int) -> bytes | None:
    """What gzip has compressed; None if it is damaged, goes on, or is of another size."""
    unpacking = zlib.decompressobj(GZIP_WINDOW)
    try:
        plain = unpacking.decompress(data, size + 1)
    except zlib.error:
        return None
    return plain if len(plain) == size and unpacking.eof else None


def publishing_ids(packed: bytes) -> Sequence[int]:
    """The ids of a Publish or PublishConfirm."""
    return [int.from_bytes(packed[at : at + ID]) for at in range(0, len(packed), ID)]


def read_publish(body: bytes) -> Frame:
    """Publish version 1: up to the end of the frame, whatever the count says."""
    publisher_id, claimed = _head(body)
    ids, entries, records, batches, at = [], [], 0, 0, 4 + _HEAD.size
    while at < len(body):
        entry = entry_at(body, at + ID)
        ids.append(body[at : at + ID])
        entries.append(body[entry.start : entry.end])
        records += entry.records
        batches += entry.compression is not None
        at = entry.end
    return Publish(
        publisher_id=publisher_id,
        count=len(ids),
        publishing_ids=b"".join(ids),
        entries=b"".join(entries),
        records=records,
        batches=batches,
        claimed=None if claimed == len(ids) else claimed,
    )


def read_filtered_publish(body: bytes) -> Frame:
    """Publish version 2: a filter value in front of each entry, and no batches."""
    publisher_id, claimed = _head(body)
    ids, entries, values, at = [], [], [], 4 + _HEAD.size
    while at < len(body):
        value, start = nullable_text(body, at + ID)
        end = start + SIMPLE + int.from_bytes(body[start : start + SIMPLE])
        if start + SIMPLE > len(body) or end > len(body):
            raise Unreadable(f"expected a simple entry at byte {start}, {len(body) - start} bytes are left")
        ids.append(body[at : at + ID])
        entries.append(body[start:end])
        values.append(value)
        at = end
    return Publish(
        publisher_id=publisher_id,
        count=len(ids),
        publishing_ids=b"".join(ids),
        entries=b"".join(entries),
        records=len(ids),
        filter_values=tuple(values),
        version=2,
        claimed=None if claimed == len(ids) else claimed,
    )


def _head(body: bytes) -> tuple[int, int]:
    if len(body) < 4 + _HEAD.size:
        raise Unreadable("expected a publisher id and a count")
    publisher_id, count = _HEAD.unpack_from(body, 4)
    return publisher_id, count


def read_deliver(body: bytes) -> Frame:
    """Deliver version 1."""
    return Deliver(subscription_id=body[4], chunk=read_chunk(body, 5))


def read_committed_deliver(body: bytes) -> Frame:
    """Deliver version 2: with the id of the last committed chunk."""
    return Deliver(
        subscription_id=body[4],
        committed_chunk_id=int.from_bytes(body[5:13]),
        chunk=read_chunk(body, 13),
    )


def read_chunk(body: bytes, at: int) -> Chunk:
    """The chunk that fills the rest of a frame; all after its header is data, whatever size that names."""
    if len(body) - at < CHUNK:
        raise Unreadable(
            f"expected the {CHUNK} bytes of a chunk's header at byte {at}, {len(body) - at} are left"
        )
    (
        magic,
        chunk_type,
        entries,
        records,
        timestamp_ms,
        epoch,
        first_offset,
        crc,
        data_length,
        trailer_length,
        bloom_size,
    ) = _CHUNK_HEAD.unpack_from(body, at)
    data = body[at + CHUNK :]
    return Chunk(
        magic=magic,
        chunk_type=chunk_type,
        entries=entries,
        records=records,
        timestamp_ms=timestamp_ms,
        epoch=epoch,
        first_offset=first_offset,
        crc=crc,
        data=data,
        data_length=None if data_length == len(data) else data_length,
        trailer_length=trailer_length,
        bloom_size=bloom_size,
    )


def is_intact(chunk: Chunk) -> bool:
    """Whether the checksum is that of the data."""
    return zlib.crc32(chunk.data) == chunk.crc


def names_its_length(chunk: Chunk) -> bool:
    """Whether the header names the size of the data."""
    return chunk.data_length is None or chunk.data_length == len(chunk.data)


def counts_its_entries(chunk: Chunk) -> bool:
    """Whether the header counts the entries and the messages in the data: a batch is one entry."""
    found = whole_entries(chunk.data)
    return (len(found), sum(entry.records for entry in found)) == (chunk.entries, chunk.records)


def offset_behind(chunk: Chunk) -> int:
    """The offset after the last message of a chunk."""
    return chunk.first_offset + chunk.records
