"""One stream: a log with its writer, its readers and the connections that use it.

Rules: docs/protocols/rabbitmq-stream.md, 6 to 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from fakebrokers.core.timers import Timers
from fakebrokers.rabbitmq_stream.arguments import StreamArguments
from fakebrokers.rabbitmq_stream.chunk import ChunkType
from fakebrokers.rabbitmq_stream.chunking import Chunking
from fakebrokers.rabbitmq_stream.cluster import Membership
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.entries import messages, simple_entries
from fakebrokers.rabbitmq_stream.log import Log
from fakebrokers.rabbitmq_stream.policies import Policy
from fakebrokers.rabbitmq_stream.tracking import Tracking
from fakebrokers.rabbitmq_stream.writer import Batch, Confirm, Wall, Writer


class Message(msgspec.Struct, frozen=True):
    """A stored message, for tests.

    Attributes:
        offset: Its place in the stream.
        body: Its bytes.
        timestamp_ms: When its chunk was written, milliseconds since the Unix epoch.
    """

    offset: int
    body: bytes
    timestamp_ms: int


class Stats(msgspec.Struct, frozen=True):
    """The numbers of StreamStats; -1: nothing is there yet."""

    committed_chunk_id: int
    committed_offset: int
    first_chunk_id: int
    last_chunk_id: int


class Watcher(Protocol):
    """A connection that uses a stream, and gets a MetadataUpdate when it goes away."""

    def stream_lost(self, stream: Stream, now: float) -> None:
        """The stream is gone or has lost its member: all publishers and subscriptions on it are too."""


class Reader(Protocol):
    """What reads a stream, see `subscription.Subscription`."""

    def tell(self, now: float) -> None:
        """There may be something to send."""

    def outlive(self, segment: Log) -> None:
        """A segment was dropped; what is being read can be read on."""


class PublisherOwner(Protocol):
    """The connection that declared a publisher."""

    def confirmed(self, publisher: Publisher, publishing_ids: bytes, now: float) -> None:
        """These messages (packed u64) are stored, or were before."""


class Publisher:
    """One declared publisher of one connection.

    Attributes:
        owner: The connection; gets the confirms.
        stream: Where it writes.
        publisher_id: The client's number for it.
        reference: Its name for deduplication; empty: none.
        unconfirmed: Entries that it has written, and the owner was not told of.
        last_id: The publishing id that came last; None before the first.
    """

    def __init__(self, owner: PublisherOwner, stream: Stream, publisher_id: int, reference: str) -> None:
        self.owner = owner
        self.stream = stream
        self.publisher_id = publisher_id
        self.reference = reference
        self.unconfirmed = 0
        self._last = b""

    @property
    def last_id(self) -> int | None:
        return int.from_bytes(self._last) if self._last else None

    def publish(self, batch: Batch, now: float) -> None:
        """Write a batch; the owner is told once it is committed, and at once of duplicates."""
        self.unconfirmed += batch.count
        self._last = batch.publishing_ids[-8:] or self._last
        self.stream.writer.publish(batch, self.reference, self._confirm, now)

    def _confirm(self, publishing_ids: bytes, now: float) -> None:
        self.unconfirmed -= len(publishing_ids) // 8
        self.owner.confirmed(self, publishing_ids, now)


class Stream:
    """One stream.

    Attributes:
        virtual_host: The one it belongs to.
        name: Its name.
        arguments: What it was declared with.
        membership: Its nodes.
        log: Its chunks.
        tracking: Publisher sequences and stored offsets.
        writer: Appends to the log.
        publishers: All declared ones, over all connections.
        subscriptions: All of them, over all connections.
        watchers: The connections that get a MetadataUpdate when the stream goes away: those with a publisher,
            a subscription or a cached leader.
        committed_offset: Consumers are sent what lies below.
        false_positives: Filters let every chunk pass that has any filter value, as a bloom filter may.
    """

    def __init__(
        self,
        virtual_host: str,
        name: str,
        arguments: StreamArguments,
        membership: Membership,
        wall: Wall,
        chunking: Chunking,
        timers: Timers,
        open_until_step_ends: dict[Writer, None] | None = None,
    ) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.arguments = arguments
        self.membership = membership
        self.log = Log(arguments.segment_size)
        self.tracking = Tracking()
        self.writer = Writer(
            self.log,
            self.tracking,
            arguments,
            wall,
            chunking,
            self._written,
            self._dropped,
            timers,
            {} if open_until_step_ends is None else open_until_step_ends,
        )
        self.publishers: list[Publisher] = []
        self.subscriptions: list[Reader] = []
        self.watchers: dict[Watcher, None] = {}
        self.committed_offset = 0
        self.false_positives = False
        self._committed_chunk_id = -1
        self._unconfirmed: list[tuple[Confirm, bytes]] = []
        self._commits = True

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {self.log.next_offset} offsets, {len(self.log)} chunks)"

    def __len__(self) -> int:
        """How many messages are retained."""
        return self.log.messages

    def __bool__(self) -> bool:
        """An empty stream is a stream."""
        return True

    @property
    def committed_chunk_id(self) -> int:
        """Id of the newest chunk that consumers may see; -1: none yet."""
        return self._committed_chunk_id

    @property
    def epoch(self) -> int:
        """1 for a new stream, one more for each leader election or restart."""
        return self.writer.epoch

    def messages(self) -> Iterator[Message]:
        """All retained messages, oldest first; batches opened where the standard library can."""
        for chunk in self.log:
            if chunk.chunk_type == ChunkType.USER:
                for index, body in messages(chunk.data):
                    yield Message(chunk.first_offset + index, body, chunk.timestamp_ms)

    def publish(self, bodies: Sequence[bytes], now: float, filter_values: Sequence[str | None] = ()) -> None:
        """Write messages from the test's side, as one Publish without reference; it is a step of its own."""
        count = len(bodies)
        batch = Batch(bytes(8 * count), simple_entries(bodies), count, count, tuple(filter_values))
        self.writer.publish(batch, "", _ignore, now)
        self.writer.end_step(now)

    def resolve(self, kind: OffsetType, value: int, now: float) -> int:
        """Where a reader attaches for an offset specification (docs/protocols/rabbitmq-stream.md, 8)."""
        self.writer.close_chunk(now)
        log = self.log
        if kind == OffsetType.FIRST:
            return log.next_offset if log.first_offset is None else log.first_offset
        if kind == OffsetType.LAST:
            return log.next_offset if log.last_user_chunk_id is None else log.last_user_chunk_id
        if kind == OffsetType.OFFSET:  # the chunk that contains it; above the end as `NEXT`
            return log.locate(value)
        if kind == OffsetType.TIMESTAMP:
            return log.locate_time(value)
        return log.next_offset

    def stats(self, now: float) -> Stats:
        """The numbers of StreamStats, after what is overdue has been written."""
        self.writer.close_chunk(now)
        first, last = self.log.first_offset, self.log.last_chunk_id
        return Stats(
            committed_chunk_id=self._committed_chunk_id,
            committed_offset=self.committed_offset - 1,
            first_chunk_id=-1 if first is None else first,
            last_chunk_id=-1 if last is None else last,
        )

    def hold_commits(self) -> None:
        """The majority is gone: what is written from now on is neither confirmed nor delivered."""
        self._commits = False

    def release_commits(self, now: float) -> None:
        """The majority is back: confirm and deliver what was held."""
        self._commits = True
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        self._commit(unconfirmed, now)

    def limit(self, policy: Policy | None) -> None:
        """Keep no more than its arguments and a policy allow; the next new segment shows it."""
        settings = {} if policy is None else policy.definition
        self.writer.limit(self.arguments.limited(settings))

    def expire(self, now: float) -> None:
        """Close the newest segment and apply the retention rules at once."""
        self.writer.expire(now)

    def truncate(self, offset: int) -> None:
        """Drop all chunks in front of the one that contains `offset`."""
        self.log.truncate(offset)

    def lost(self, now: float) -> None:
        """Tell the watchers that the stream, or its member, is gone; nobody uses it afterwards."""
        watchers = list(self.watchers)
        self.abandon()
        for watcher in watchers:
            watcher.stream_lost(self, now)

    def abandon(self) -> None:
        """Forget all users of the stream silently; what was not confirmed never will be."""
        self.watchers.clear()
        self.publishers.clear()
        self.subscriptions.clear()
        self._unconfirmed.clear()

    def elect(self, now: float) -> None:
        """A new leader took over: what the old one had not written is lost, the epoch rises."""
        self.writer.crashed()
        self._commits = True
        self._commit([], now)

    def _written(self, confirms: list[tuple[Confirm, bytes]], now: float) -> None:
        if self._commits:
            self._commit(confirms, now)
        else:
            self._unconfirmed += confirms

    def _dropped(self, segment: Log) -> None:
        """Readers in a segment go on in it after it was dropped, as in a file that was deleted."""
        for subscription in self.subscriptions:
            subscription.outlive(segment)

    def _commit(self, confirms: list[tuple[Confirm, bytes]], now: float) -> None:
        self.committed_offset = self.log.next_offset
        last = self.log.last_chunk_id
        self._committed_chunk_id = self._committed_chunk_id if last is None else last
        for confirm, publishing_ids in confirms:
            confirm(publishing_ids, now)
        for subscription in tuple(self.subscriptions):
            subscription.tell(now)


def _ignore(publishing_ids: bytes, now: float) -> None:
    """The confirm of messages that the test itself has written."""
