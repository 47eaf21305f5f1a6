"""The entries inside Publish frames and chunks (docs/protocols/rabbitmq-stream.md, 6).

An entry is a simple one (u32 length with top bit 0, body) or a sub-entry batch (u8 ``0x80 | compression
<< 4``, u16 records, u32 uncompressed size, u32 data size, data). The broker itself never looks into a
batch; `messages` does, for tests that want to see what was stored.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct, error
from typing import NamedTuple

_U32 = Struct(">I")
_BATCH = Struct(">BHII")
#: How a section of data begins: its descriptor, then binary data with a length of one byte or of four.
_DATA_SECTION = re.compile(rb"\x00Su(?:\xa0(.)|\xb0(.{4}))", re.DOTALL)

#: bytes in front of the body of a simple entry, and of the data of a batch
SIMPLE_HEADER, BATCH_HEADER = 4, 11
#: bytes of a batch that is opened, as servers allow it
MAX_INFLATED = 64 * 1024 * 1024
#: the u16 in a chunk's header
MAX_ENTRIES = 65_535


class Span(NamedTuple):
    """Where an entry lies, and how many records it stands for."""

    start: int
    end: int
    records: int


def spans(entries: bytes, start: int = 0) -> Iterator[Span]:
    """Where the entries are; they were checked when they came in."""
    end = len(entries)
    while start < end:
        if entries[start] & 0x80:
            _, records, _, size = _BATCH.unpack_from(entries, start)
            stop = start + BATCH_HEADER + size
        else:
            records = 1
            stop = start + SIMPLE_HEADER + int(_U32.unpack_from(entries, start)[0])
        yield Span(start, stop, records)
        start = stop


def whole_spans(entries: bytes) -> list[Span]:
    """Where the entries are, up to the first that is not whole; a fault may have cut them."""
    found = []
    try:
        for span in spans(entries):
            if span.end > len(entries):
                break
            found.append(span)
    except error:
        pass
    return found


def starts(entries: bytes, count: int) -> Sequence[int]:
    """Where each of the `count` entries begins, and where the last one ends."""
    step, rest = divmod(len(entries), count)
    if not rest and step >= SIMPLE_HEADER:
        # the usual case, simple entries that are all as long, needs no look at each of them
        length = _U32.pack(step - SIMPLE_HEADER)
        if all(entries[at::step].count(byte) == count for at, byte in enumerate(length)):
            return range(0, len(entries) + 1, step)
    return [*(span.start for span in spans(entries)), len(entries)]


def simple_entries(bodies: Iterable[bytes]) -> bytes:
    """Bodies as simple entries, back to back."""
    return b"".join([part for body in bodies for part in (_U32.pack(len(body)), body)])


def messages(entries: bytes) -> Iterator[tuple[int, bytes]]:
    """Each record's index and body, batches opened.

    A batch that cannot be opened (snappy, lz4, zstd, damaged, or of more bytes than it says) gives one body:
    its data as stored.
    """
    index = 0
    for start, end, records in spans(entries):
        if entries[start] & 0x80:
            head, _, size, _ = _BATCH.unpack_from(entries, start)
            bodies = _open_batch(head >> 4 & 0b111, entries[start + BATCH_HEADER : end], size)
            yield from enumerate(bodies, index)
        else:
            yield index, entries[start + SIMPLE_HEADER : end]
        index += records


def contents(entries: bytes) -> Iterator[bytes]:
    """The body of each record up to the first entry that is not whole, for people: of a message in AMQP 1.0
    that is one section of data, these data."""
    for start, end, _ in whole_spans(entries):
        for _, body in messages(entries[start:end]):
            found = _DATA_SECTION.match(body)
            is_all = found is not None and len(body) - found.end() == int.from_bytes(found[1] or found[2])
            yield body[found.end() :] if found is not None and is_all else body


def _open_batch(compression: int, data: bytes, size: int) -> list[bytes]:
    if compression > 1:
        return [data]
    try:
        plain = _inflated(data, min(size, MAX_INFLATED)) if compression else data
        return [plain[inner.start + SIMPLE_HEADER : inner.end] for inner in spans(plain)]
    except (EOFError, zlib.error, error):
        return [data]


def _inflated(data: bytes, limit: int) -> bytes:
    """What gzip has compressed, perhaps in several pieces.

    Raises:
        zlib.error, EOFError: It is damaged, cut off, or has more than `limit` bytes.
    """
    found = b""
    while data:
        member = zlib.decompressobj(wbits=31)
        found += member.decompress(data, limit - len(found) + 1)
        if not member.eof or len(found) > limit:
            raise EOFError
        data = member.unused_data.lstrip(b"\0")
    return found
