"""The writer of a stream: batches of entries into chunks (docs/protocols/rabbitmq-stream.md, 6 and 7).

It knows two kinds of time: `now` (monotonic seconds) says what is due, the wall clock stamps the chunks.
What comes at the same `now` goes into the same chunk: a stored offset goes into the trailer of a Publish
that follows it at that time; otherwise it becomes a tracking chunk of its own and takes an offset.
A chunk may also be left open until the step ends that its messages came in (see `chunking.PerStep`).

A segment that is full is closed by the next chunk. Where something is tracked that is a snapshot, which is
written as soon as the writer has anything to do, and answering a question is enough (see `Writer.touch`).
Retention is applied after the chunks that a new segment begins with, and counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from struct import pack

import msgspec

from fakebrokers.core.timers import Timers
from fakebrokers.rabbitmq_stream.arguments import StreamArguments
from fakebrokers.rabbitmq_stream.chunk import Chunk, ChunkType
from fakebrokers.rabbitmq_stream.chunking import Chunking
from fakebrokers.rabbitmq_stream.dedup import deduplicate
from fakebrokers.rabbitmq_stream.entries import MAX_ENTRIES, spans, starts
from fakebrokers.rabbitmq_stream.filters import ChunkFilter, chunk_filter
from fakebrokers.rabbitmq_stream.log import Log
from fakebrokers.rabbitmq_stream.tracking import Tracking

#: wall clock: seconds since the Unix epoch for a monotonic `now`
Wall = Callable[[float], float]

#: called with packed publishing ids and `now` once they are stored on a majority
Confirm = Callable[[bytes, float], None]


class Batch(msgspec.Struct, frozen=True, gc=False):
    """The messages of one Publish, as they came.

    Attributes:
        publishing_ids: Packed u64, big endian, one per entry.
        entries: The entries back to back, as a chunk stores them.
        count: How many entries.
        records: How many messages, sub-entry batches expanded.
        filter_values: One per entry, None for none; empty if no entry has one.
    """

    publishing_ids: bytes
    entries: bytes
    count: int
    records: int
    filter_values: tuple[str | None, ...] = ()

    def pieces(self, sizes: list[int]) -> Iterator[Batch]:
        """Cut into batches, `sizes[i]` entries in the i-th."""
        if len(sizes) == 1:
            yield self
            return
        where = starts(self.entries, self.count)
        start = 0
        for size in sizes:
            end = start + size
            entries = self.entries[where[start] : where[end]]
            yield Batch(
                self.publishing_ids[8 * start : 8 * end],
                entries,
                size,
                size if self.records == self.count else sum(span.records for span in spans(entries)),
                self.filter_values[start:end],
            )
            start = end

    def select(self, kept: list[int], publishing_ids: bytes) -> Batch:
        """Only the entries at these positions, whose ids are given."""
        where = list(spans(self.entries))
        return Batch(
            publishing_ids,
            b"".join([self.entries[where[index].start : where[index].end] for index in kept]),
            len(kept),
            sum(where[index].records for index in kept),
            tuple([self.filter_values[index] for index in kept]) if self.filter_values else (),
        )


class Writer:
    """Appends to a log.

    Attributes:
        chunking: Where chunks end; may be exchanged at any time.
        epoch: Goes into every chunk.
        flush_at: When pending tracking data, or a chunk that was left open, has to be written; None if there
            is nothing of the kind.

    Args:
        open_until_step_ends: The writers whose `end_step` is to be called when the step ends; it adds itself.
    """

    def __init__(
        self,
        log: Log,
        tracking: Tracking,
        arguments: StreamArguments,
        wall: Wall,
        chunking: Chunking,
        written: Callable[[list[tuple[Confirm, bytes]], float], None],
        dropped: Callable[[Log], None],
        timers: Timers,
        open_until_step_ends: dict[Writer, None],
    ) -> None:
        self.chunking = chunking
        self.epoch = 1
        self.flush_at: float | None = None
        self._log = log
        self._tracking = tracking
        self._arguments = arguments
        self._wall = wall
        self._written = written
        self._dropped = dropped
        self._open: list[tuple[Batch, Confirm]] = []
        self._open_entries = 0
        self._open_until_step_ends = open_until_step_ends
        self._timer = timers.new(self._flush)

    def limit(self, arguments: StreamArguments) -> None:
        """Keep what these arguments say from now on."""
        self._arguments = arguments

    def publish(self, batch: Batch, reference: str, confirm: Confirm, now: float) -> None:
        """Write a batch; `confirm` is called for each chunk that it goes into, and for duplicates.

        Args:
            batch: What to write.
            reference: The publisher's; empty: no deduplication.
            confirm: Called with packed publishing ids, once they are stored on a majority.
            now: Monotonic seconds.
        """
        if self.flush_at is not None:
            self.close_chunk(now)
        if reference:
            batch = self._deduplicate(batch, reference, confirm, now)
        if not batch.count:
            self.touch(now)
            return
        sizes = self.chunking.cut(batch.count)
        if batch.count > MAX_ENTRIES:
            sizes = [part for size in sizes for part in _limited(size)]
        if len(sizes) > 1:
            *pieces, batch = batch.pieces(sizes)
            for piece in pieces:
                self._put(piece, reference, confirm, now)
                self._flush(now)
        self._put(batch, reference, confirm, now)
        if not self.chunking.leave_open():
            self._flush(now)
        elif self.chunking.linger_s is None:
            self._open_until_step_ends[self] = None
        else:
            self._flush_later(now + self.chunking.linger_s)

    def _put(self, piece: Batch, reference: str, confirm: Confirm, now: float) -> None:
        """Into the chunk that is open, or into another if it does not fit."""
        if self._open_entries + piece.count > MAX_ENTRIES:
            self._flush(now)
        if reference:
            sequence = int.from_bytes(piece.publishing_ids[-8:], "big")
            self._tracking.put_sequence(reference, sequence, self._log.next_offset)
        self._open.append((piece, confirm))
        self._open_entries += piece.count

    def store_offset(self, reference: str, offset: int, now: float) -> None:
        """Store a consumer's offset; it can be read back at once and is written with the next chunk."""
        self.close_chunk(now)
        self._tracking.put_offset(reference, offset)
        if self.flush_at is None:
            self._flush_later(now)

    def touch(self, now: float) -> None:
        """A question has come: close a full segment if something is tracked."""
        if self._owes_snapshot:
            self._flush(now)

    def touch_later(self, now: float) -> None:
        """A reader waits at the end: as `touch`, when all others have read what is there."""
        if self.flush_at is None and self._owes_snapshot:
            self._flush_later(now)

    @property
    def _owes_snapshot(self) -> bool:
        return self._log.segment_is_full and not self._open and not self._tracking.is_empty

    def close_chunk(self, now: float) -> None:
        """Write the chunk that was left open, and tracking data, if they were due before `now`.

        What is due exactly at `now` stays open: more may come at the same time, and goes into the same chunk.
        """
        if self.flush_at is not None and self.flush_at < now:
            self._flush(now)

    def end_step(self, now: float) -> None:
        """Write the chunk that was left open for what else the step may bring."""
        if self in self._open_until_step_ends:
            self.chunking.step_ended()
            self._flush(now)

    def _flush_later(self, at: float | None) -> None:
        self.flush_at = at
        self._timer.set(at)

    def expire(self, now: float) -> None:
        """Close the newest segment and apply the retention rules, as if a new one had begun."""
        self._log.begin_segment()
        self._retain(now)

    def crashed(self) -> None:
        """Lose what was not written; the epoch rises by one at each leader election or restart."""
        self._flush_later(None)
        self._take_open()
        self._tracking.forget_pending()
        self.epoch += 1

    def _deduplicate(self, batch: Batch, reference: str, confirm: Confirm, now: float) -> Batch:
        last = self._tracking.sequences.get(reference, -1)
        found = deduplicate(batch.publishing_ids, last)
        if found.duplicates:
            confirm(found.duplicates, now)
        return batch if found.kept is None else batch.select(found.kept, found.fresh)

    def _flush(self, now: float) -> None:
        self._flush_later(None)
        segments = self._log.segments_begun
        if self._log.segment_is_full and not self._tracking.is_empty:
            first = self._log.first_offset
            snapshot = self._tracking.snapshot(0 if first is None else first)
            self._write_tracking(snapshot, ChunkType.TRACKING_SNAPSHOT, now)
        parts = self._take_open()
        tracked = self._tracking.take()
        if parts:
            self._write_messages(_whole([batch for batch, _ in parts]), tracked, now)
        elif tracked:
            self._write_tracking(tracked, ChunkType.TRACKING_DELTA, now)
        if self._log.segments_begun > segments:
            self._retain(now)
        self._written(_joined([(confirm, batch.publishing_ids) for batch, confirm in parts]), now)

    def _take_open(self) -> list[tuple[Batch, Confirm]]:
        self._open_until_step_ends.pop(self, None)
        parts, self._open = self._open, []
        self._open_entries = 0
        return parts

    def _write_messages(self, batch: Batch, trailer: bytes, now: float) -> None:
        found = chunk_filter(batch.filter_values) if batch.filter_values else None
        chunk = Chunk.build(
            batch.entries,
            entries=batch.count,
            records=batch.records,
            first_offset=self._log.next_offset,
            timestamp_ms=self._wall_ms(now),
            epoch=self.epoch,
            trailer_length=len(trailer),
            bloom_size=0 if found is None else self._arguments.filter_size,
        )
        self._append(chunk, found, trailer)

    def _write_tracking(self, items: bytes, chunk_type: ChunkType, now: float) -> None:
        chunk = Chunk.build(
            pack(">I", len(items)) + items,
            entries=1,
            records=1,
            first_offset=self._log.next_offset,
            timestamp_ms=self._wall_ms(now),
            epoch=self.epoch,
            chunk_type=chunk_type,
        )
        self._append(chunk)

    def _append(self, chunk: Chunk, values: ChunkFilter | None = None, trailer: bytes = b"") -> None:
        if self._log.segment_is_full:
            self._log.begin_segment()
        self._log.append(chunk, values, trailer)

    def _retain(self, now: float) -> None:
        limit, age = self._arguments.max_length, self._arguments.max_age_s
        dropped = self._log.retain(
            None if limit is None or limit < 0 else limit,
            None if age is None else self._wall_ms(now) - 1000 * age,
        )
        for segment in dropped:
            self._dropped(segment)

    def _wall_ms(self, now: float) -> int:
        return int(self._wall(now) * 1000)


def _whole(parts: list[Batch]) -> Batch:
    """The batches of a chunk as one."""
    if len(parts) == 1:
        return parts[0]
    filtered = any([part.filter_values for part in parts])
    return Batch(
        b"".join([part.publishing_ids for part in parts]),
        b"".join([part.entries for part in parts]),
        sum(part.count for part in parts),
        sum(part.records for part in parts),
        tuple([value for part in parts for value in part.filter_values or (None,)]) if filtered else (),
    )


def _joined(confirms: list[tuple[Confirm, bytes]]) -> list[tuple[Confirm, bytes]]:
    """What follows each other for one publisher, as one."""
    if len(confirms) < 2:
        return confirms
    return [
        (confirm, b"".join([publishing_ids for _, publishing_ids in group]))
        for confirm, group in groupby(confirms, key=itemgetter(0))
    ]


def _limited(size: int) -> list[int]:
    """Sizes of chunks for `size` entries: at most `MAX_ENTRIES` each, the u16 in a chunk's header."""
    full, rest = divmod(size, MAX_ENTRIES)
    return [MAX_ENTRIES] * full + ([rest] if rest else [])
