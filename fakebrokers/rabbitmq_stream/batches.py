"""Sub-entry batches: the rule for their headers, and building them (docs/protocols/rabbitmq-stream.md, 6).

A batch is ``0x80 | compression << 4``, u16 record count, u32 uncompressed size, u32 data size and the
data; uncompressed data is one simple entry per record. It has one publishing id and takes one offset per
record. No broker ever looks into the data.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from struct import Struct

from fakebrokers.errors import UsageError
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.entries import simple_entries, spans

_HEADER = Struct(">BHII")

MAX_UNCOMPRESSED = 64 * 1024 * 1024  #: bytes that a batch may announce


def batch_entry(messages: Sequence[bytes], compression: Compression = Compression.NONE) -> bytes:
    """Several messages as one batch.

    Raises:
        UsageError: The compression is neither none nor gzip.
    """
    plain = simple_entries(messages)
    if compression is Compression.NONE:
        data = plain
    elif compression is Compression.GZIP:
        data = gzip.compress(plain, mtime=0)
    else:
        raise UsageError(f"cannot pack with {compression.name}: only NONE and GZIP are built in")
    return _HEADER.pack(0x80 | compression << 4, len(messages), len(plain), len(data)) + data


def batch_problem(entries: bytes, start: int = 0) -> str | None:
    """Why a 4.3 server refuses the batch that begins at `start`; None if it takes it."""
    kind, records, uncompressed, size = _HEADER.unpack_from(entries, start)
    compression = kind >> 4 & 7
    if uncompressed > MAX_UNCOMPRESSED:
        return f"uncompressed size {uncompressed} is above {MAX_UNCOMPRESSED}"
    if records == 0:
        return "record count is 0"
    if records * 4 > uncompressed:
        return f"{records} records do not fit into {uncompressed} bytes"
    if compression > max(Compression):
        return f"compression {compression} is unknown"
    if compression and size == 0:
        return "compressed data is empty"
    return None


def first_bad(entries: bytes) -> int | None:
    """Index of the first entry that a 4.3 server refuses; None if it takes them all.

    That server answers PublishError 17 for this entry and for every one after it in the frame. Frames
    whose `Publish.batches` is 0 need not be asked.
    """
    for index, span in enumerate(spans(entries)):
        if entries[span.start] & 0x80 and batch_problem(entries, span.start):
            return index
    return None
