"""Defects in reading chunks (catalogue section RMQS-4)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from zlib import crc32

import msgspec

from conformance.clients.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Callbacks, ClientError
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Subscription
from fakebrokers.rabbitmq_stream.chunk import MAGIC, Chunk, ChunkType
from fakebrokers.rabbitmq_stream.codes import Compression
from fakebrokers.rabbitmq_stream.frames import Deliver

Report = Callable[[ClientError], None]


@mutant("one-message-per-chunk", tag="data", breaks=["R10"])
class OneMessagePerChunk(Subscription):
    """Delivers the first message of each chunk only."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        return super().messages(chunk, report)[:1]


@mutant("chunks-of-256-entries", tag="wire", breaks=["R10"])
class ChunksOf256Entries(Subscription):
    """Reads one byte of the number of entries."""

    def records(self, chunk: Chunk, report: Report) -> Iterator[tuple[int, bytes]]:
        for number, found in enumerate(super().records(chunk, report)):
            if number < chunk.entries & 0xFF:
                yield found


@mutant("positions-from-zero", tag="data", breaks=["R9", "R10"])
class PositionsFromZero(Subscription):
    """Numbers the messages of each chunk from 0."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        found = super().messages(chunk, report)
        return [message._replace(offset=message.offset - chunk.first_offset) for message in found]


@mutant("crc-unread", tag="wire", breaks=["R10"])
class CrcUnread(Subscription):
    """Delivers what does not have its CRC."""

    def check(self, chunk: Chunk) -> None:
        super().check(msgspec.structs.replace(chunk, crc=crc32(chunk.data)))


@mutant("crc-mismatch-in-silence", tag="data", breaks=["R10"])
class CrcMismatchInSilence(Subscription):
    """Throws a damaged chunk away and reports nothing."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        return super().messages(chunk, report if chunk.crc_ok else lambda _: None)


@mutant("crc-signed", tag="wire", breaks=["R10"])
class CrcSigned(Subscription):
    """Compares the CRC as a signed number with an unsigned one."""

    def check(self, chunk: Chunk) -> None:
        super().check(chunk)
        if chunk.crc >> 31:
            raise ClientError("protocol", f"chunk {chunk.first_offset}: the CRC does not match")


@mutant("data-length-kills-the-reader", tag="wire", breaks=["R1", "R10"])
class DataLengthKillsTheReader(DeafConnection):
    """Reads nothing more, without an error, once a data length is not that of the frame."""

    def delivered(self, frame: Deliver) -> None:
        if not frame.chunk.length_ok:
            self.go_deaf()
        super().delivered(frame)


@mutant("data-length-trusted", tag="wire", breaks=["R1", "R10"])
class DataLengthTrusted(Subscription):
    """Takes as many bytes as the data length says, and fills up with zeros."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        extra = 0 if chunk.data_length is None else chunk.data_length - len(chunk.data)
        *found, last = super().messages(msgspec.structs.replace(chunk, data_length=None), report)
        body = last.body + bytes(extra) if extra > 0 else last.body[: len(last.body) + extra]
        return [*found, last._replace(body=body)]


@mutant("chunk-type-unread", tag="wire", breaks=["R10", "R20"])
class ChunkTypeUnread(Subscription):
    """Delivers tracking data as messages."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        return super().messages(msgspec.structs.replace(chunk, chunk_type=ChunkType.USER), report)


@mutant("chunk-magic-unread", tag="wire", breaks=["R10", "R20"])
class ChunkMagicUnread(Subscription):
    """Reads chunks of another format like its own."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        return super().messages(msgspec.structs.replace(chunk, magic=MAGIC), report)


@mutant("no-credit-for-odd-chunks", tag="life-cycle", breaks=["R10", "R20"])
class NoCreditForOddChunks(Subscription):
    """Gives no credit for chunks that hold no messages."""

    def processed(self, chunk: Chunk) -> None:
        if chunk.chunk_type == ChunkType.USER and chunk.magic == MAGIC:
            super().processed(chunk)


@mutant("first-of-each-batch", tag="data", breaks=["R10"])
class FirstOfEachBatch(Subscription):
    """Delivers the first message of a sub-entry batch only."""

    def open_batch(
        self, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        return super().open_batch(compression, count, plain_size, data, report)[:1]


@mutant("bad-batch-in-silence", tag="data", breaks=["R10", "R20"])
class BadBatchInSilence(Subscription):
    """Skips a batch that cannot be opened and reports nothing."""

    def open_batch(
        self, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        return super().open_batch(compression, count, plain_size, data, lambda _: None)


@mutant("bad-batch-surfaced-raw", tag="wire", breaks=["R10", "R20"])
class BadBatchSurfacedRaw(Subscription):
    """Delivers a batch that cannot be opened as one message."""

    def open_batch(
        self, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        return super().open_batch(compression, count, plain_size, data, report) or [data]


@mutant("unknown-compression-is-none", tag="wire", breaks=["R10", "R20"])
class UnknownCompressionIsNone(Subscription):
    """Takes a compression that it does not know for none."""

    def decompress(self, compression: int, plain_size: int, data: bytes) -> bytes:
        known = compression == Compression.GZIP
        return super().decompress(compression if known else Compression.NONE, plain_size, data)


@mutant("contiguous-chunks-only", tag="life-cycle", breaks=["R10"])
class ContiguousChunksOnly(Subscription):
    """Waits for the offsets between two chunks."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        gap = self.next_offset is not None and chunk.first_offset > self.next_offset
        return [] if gap else super().messages(chunk, report)

    def processed(self, chunk: Chunk) -> None:
        if self.next_offset is None or chunk.first_offset <= self.next_offset:
            super().processed(chunk)


@mutant("trailer-expected", tag="wire", breaks=["R1", "R10"])
class TrailerExpected(Subscription):
    """Cuts a trailer off the data that was never sent."""

    def records(self, chunk: Chunk, report: Report) -> Iterator[tuple[int, bytes]]:
        size = len(chunk.data) - chunk.trailer_length
        return super().records(msgspec.structs.replace(chunk, data=chunk.data[: max(size, 0)]), report)


@mutant("filter-expected", tag="wire", breaks=["R1", "R10"])
class FilterExpected(Subscription):
    """Skips a bloom filter in front of the data that was never sent."""

    def records(self, chunk: Chunk, report: Report) -> Iterator[tuple[int, bytes]]:
        return super().records(msgspec.structs.replace(chunk, data=chunk.data[chunk.bloom_size :]), report)


@mutant("committed-id-as-chunk-id", tag="wire", breaks=["R10", "R20"])
class CommittedIdAsChunkId(Connection):
    """Takes the committed chunk id of Deliver version 2 for the id of the chunk."""

    def delivered(self, frame: Deliver) -> None:
        if frame.committed_chunk_id is not None:
            chunk = msgspec.structs.replace(frame.chunk, first_offset=frame.committed_chunk_id)
            frame = Deliver(frame.subscription_id, chunk)
        super().delivered(frame)


@mutant("frame-max-binds-the-server", tag="wire", breaks=["R10", "R16"])
class FrameMaxBindsTheServer(Connection):
    """Closes for a Deliver above the frame maximum."""

    def opened(self) -> None:
        super().opened()
        self.codec.max_frame = self.frame_max


@mutant("bad-chunks-are-logged-only", tag="data", breaks=["R10"])
class BadChunksAreLoggedOnly(Callbacks):
    """Writes what it cannot read of a chunk into its log, and reports nothing to the application."""

    def trouble(self, where: str, error: ClientError) -> None:
        if where == "decode":
            print(f"WARNING {error.text}", file=sys.stderr)
        else:
            super().trouble(where, error)


@mutant("whole-batch-at-the-start", tag="data", breaks=["R9", "R10"])
class WholeBatchAtTheStart(Subscription):
    """Delivers all of a batch in whose middle it begins."""

    has_batch = False

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        self.has_batch = False
        return super().messages(chunk, report)

    def open_batch(
        self, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        self.has_batch = True
        return super().open_batch(compression, count, plain_size, data, report)

    def is_wanted(self, offset: int) -> bool:
        return self.has_batch or super().is_wanted(offset)
