"""Streams without sessions: publishers and readers for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fakebrokers.core.timers import Timers
from fakebrokers.rabbitmq_stream.arguments import StreamArguments
from fakebrokers.rabbitmq_stream.binary import pack_ids, unpack_ids
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.chunking import Chunking, PerPublish
from fakebrokers.rabbitmq_stream.cluster import Membership
from fakebrokers.rabbitmq_stream.codes import OffsetType
from fakebrokers.rabbitmq_stream.entries import simple_entries
from fakebrokers.rabbitmq_stream.stream import Publisher, Stream
from fakebrokers.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.writer import Batch

WALL = 1_700_000_000.0


class TimedStream(Stream):
    """A stream with timers of its own."""

    def __init__(self, *args: Any) -> None:
        self.timers = Timers()
        super().__init__(*args, self.timers)


def new_stream(arguments: StreamArguments | None = None, chunking: Chunking | None = None) -> TimedStream:
    return TimedStream(
        "/",
        "s",
        arguments or StreamArguments(),
        Membership(None),
        lambda now: WALL + now,
        chunking or PerPublish(),
    )


class Writing:
    """A connection with one publisher."""

    def __init__(self, stream: Stream, reference: str = "") -> None:
        self.publisher = Publisher(self, stream, 1, reference)
        self.confirms: list[tuple[int, ...]] = []

    def confirmed(self, publisher: Publisher, publishing_ids: bytes, now: float) -> None:
        assert publisher is self.publisher
        self.confirms.append(unpack_ids(publishing_ids))

    def publish(
        self, *ids: int, now: float = 0.0, values: Sequence[str | None] = (), body: bytes = b"m%d"
    ) -> list[tuple[int, ...]]:
        """Publish one message per id; returns the confirms that came at once."""
        bodies = [body % number for number in ids]
        batch = Batch(pack_ids(ids), simple_entries(bodies), len(ids), len(ids), tuple(values))
        self.confirms.clear()
        self.publisher.publish(batch, now)
        return list(self.confirms)


def reading(
    stream: Stream,
    kind: OffsetType = OffsetType.FIRST,
    value: int = 0,
    credit: int = 1000,
    **properties: str,
) -> Subscription:
    properties = {key.replace("__", "."): text for key, text in properties.items()}
    subscription = Subscription(stream, 1, (kind, value), credit, 0, properties, lambda *_: None)
    subscription.attach(None, 0.0)
    return subscription


def read(subscription: Subscription) -> list[Chunk]:
    """Everything that may be sent now."""
    return list(iter(subscription.next_chunk, None))


def ids(subscription: Subscription) -> list[int]:
    return [chunk.first_offset for chunk in read(subscription)]


def bodies(stream: Stream) -> list[bytes]:
    return [message.body for message in stream.messages()]


class LeftOpen(PerPublish):
    """Every chunk waits half a second for more."""

    linger_s = 0.5

    def leave_open(self) -> bool:
        """Always."""
        return True
