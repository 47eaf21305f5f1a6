"""A chunk: the unit in which a stream stores, replicates and delivers messages.

Layout of the 48-byte header: docs/protocols/rabbitmq-stream.md, 7 (osiris log format, version 0). The data
after it holds the entries back to back (see `entries`), without publishing ids. Trailer and bloom filter
exist only in a real broker's log: their lengths are announced to consumers, their bytes are never sent.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from zlib import crc32

import msgspec

from fakebrokers.errors import WireError

_HEADER = Struct(">BBHIqQQIIIB3x")

HEADER_SIZE = 48
MAGIC = 0x50  #: magic 5 in the high nibble, format version 0 in the low one


class ChunkType(IntEnum):
    """What a chunk holds; consumers are normally sent `USER` only."""

    USER = 0
    TRACKING_DELTA = 1
    TRACKING_SNAPSHOT = 2


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """One chunk, as a value. Nothing is recomputed: a wrong `crc` is sent as it stands here.

    Attributes:
        chunk_type: See `ChunkType`.
        entries: Simple entries plus sub-entry batches in `data`, u16.
        records: Messages in `data`, batch counts expanded, u32.
        timestamp_ms: When the chunk was written, milliseconds since the Unix epoch.
        epoch: 1 for a new stream, one more for each leader election or restart.
        first_offset: Offset of the first record; also the chunk's id.
        crc: CRC-32 (zlib polynomial) of `data`.
        data: The entries, back to back.
        trailer_length: Size of the trailer in the log, bytes; it is not sent.
        bloom_size: Size of the bloom filter in the log, bytes; it is not sent.
        magic: First byte of the header; anything but `MAGIC` is a fault.
        data_length: What the header says instead of the size of `data`; a fault.
    """

    chunk_type: int
    entries: int
    records: int
    timestamp_ms: int
    epoch: int
    first_offset: int
    crc: int
    data: bytes
    trailer_length: int = 0
    bloom_size: int = 0
    magic: int = MAGIC
    data_length: int | None = None

    @classmethod
    def build(
        cls,
        data: bytes,
        *,
        entries: int,
        records: int,
        first_offset: int,
        timestamp_ms: int,
        epoch: int = 1,
        chunk_type: int = ChunkType.USER,
        trailer_length: int = 0,
        bloom_size: int = 0,
    ) -> Chunk:
        """A chunk around `data` with the right CRC."""
        return cls(
            chunk_type=chunk_type,
            entries=entries,
            records=records,
            timestamp_ms=timestamp_ms,
            epoch=epoch,
            first_offset=first_offset,
            crc=crc32(data),
            data=data,
            trailer_length=trailer_length,
            bloom_size=bloom_size,
        )

    @classmethod
    def parse(cls, raw: bytes | bytearray | memoryview, start: int = 0, end: int | None = None) -> Chunk:
        """The chunk that fills ``raw[start:end]``: everything after the header is data.

        CRC and data length are taken as they come: see `crc_ok` and `length_ok`.

        Raises:
            WireError: The bytes are fewer than a header.
        """
        end = len(raw) if end is None else end
        if end - start < HEADER_SIZE:
            raise WireError(f"a chunk header of {HEADER_SIZE} bytes", f"{end - start} bytes", start)
        begin = start + HEADER_SIZE
        return cls.join(raw[start:begin], bytes(raw[begin:end]))

    @classmethod
    def join(cls, header: bytes | bytearray | memoryview, data: bytes) -> Chunk:
        """The chunk of a header and its data, which is not copied."""
        (
            magic, chunk_type, entries, records, timestamp_ms, epoch, first_offset,
            crc, length, trailer_length, bloom_size,
        ) = _HEADER.unpack(header)  # fmt: skip
        return cls(
            chunk_type, entries, records, timestamp_ms, epoch, first_offset,
            crc, data, trailer_length, bloom_size, magic, None if length == len(data) else length,
        )  # fmt: skip

    def header(self) -> bytes:
        """The 48 bytes in front of `data`."""
        length = len(self.data) if self.data_length is None else self.data_length
        return _HEADER.pack(
            self.magic, self.chunk_type, self.entries, self.records, self.timestamp_ms, self.epoch,
            self.first_offset, self.crc, length, self.trailer_length, self.bloom_size,
        )  # fmt: skip

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return self.first_offset + self.records

    @property
    def crc_ok(self) -> bool:
        """Does `crc` belong to `data`?"""
        return crc32(self.data) == self.crc

    @property
    def length_ok(self) -> bool:
        """Does the header announce the size of `data`?"""
        return self.data_length in (None, len(self.data))
