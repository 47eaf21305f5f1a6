"""Frames that open, control and close subscriptions, and carry what they are sent
(docs/protocols/rabbitmq-stream.md, 3 and 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import ClassVar

from msgspec.structs import replace

from fakebrokers.core.frames import FrameSpec, Items, Role
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.entries import contents, whole_spans
from fakebrokers.rabbitmq_stream.frames_base import Request, Response, Sender, StreamFrame
from fakebrokers.rabbitmq_stream.wiretypes import (
    I16,
    U8,
    U16,
    U64,
    AnsweredOffset,
    InitialCredit,
    Offset,
    OptionalMap,
    Text,
)


class Subscribe(Request, frozen=True):
    """Opens a subscription.

    Attributes:
        offset_type: One of `codes.OffsetType`, 1 to 5.
        offset: An offset (type 4) or a time in milliseconds since the epoch (type 5), else None.
        credit: Chunks that may be sent at first.
        properties: None if the map is absent, as old clients leave it.
    """

    spec = FrameSpec(Role.OPEN, key="correlation_id")
    KEY: ClassVar = 0x0007
    subscription_id: U8
    stream: Text
    offset_type: U16
    offset: Offset
    credit: InitialCredit
    properties: OptionalMap = None


class SubscribeResponse(Response, frozen=True):
    """Always comes before the first Deliver. 3: id used already; 2, 6: stream; 16: no permission."""

    KEY: ClassVar = 0x8007


class DeliveredItems(Items):
    """The entries of a chunk, by the offset of their first message.

    A selection is a chunk of its own with a right CRC: it begins at the offset of its first entry, and
    what follows counts on from there, as offsets inside a chunk have no gaps.
    """

    def count(self, frame: Deliver) -> int:
        return frame.chunk.entries

    def keys(self, frame: Deliver) -> Sequence[int]:
        chunk = frame.chunk
        if chunk.entries == chunk.records:
            return range(chunk.first_offset, chunk.first_offset + chunk.records)
        records = [entry.records for entry in whole_spans(chunk.data)]
        return tuple(accumulate(records[:-1], initial=chunk.first_offset))

    def covers(self, frame: Deliver) -> range:
        return range(frame.chunk.first_offset, frame.chunk.first_offset + frame.chunk.records)

    def bodies(self, frame: Deliver) -> Iterable[bytes]:
        return contents(frame.chunk.data)

    def select(self, frame: Deliver, indices: Sequence[int]) -> Deliver:
        chunk = frame.chunk
        entries = whole_spans(chunk.data)
        chosen = [entries[i] for i in indices if i < len(entries)]
        selection = Chunk.build(
            b"".join([chunk.data[entry.start : entry.end] for entry in chosen]),
            entries=len(chosen),
            records=sum(entry.records for entry in chosen),
            first_offset=self.keys(frame)[indices[0]] if indices else chunk.first_offset,
            timestamp_ms=chunk.timestamp_ms,
            epoch=chunk.epoch,
            chunk_type=chunk.chunk_type,
            trailer_length=chunk.trailer_length,
            bloom_size=chunk.bloom_size,
        )
        return replace(frame, chunk=selection)


class Deliver(StreamFrame, frozen=True):
    """One chunk for a subscription; with `committed_chunk_id` (version 2) or without (None, version 1)."""

    spec = FrameSpec(Role.DELIVER, "first_offset", DeliveredItems(), bulk=("chunk",), scope="subscription_id")
    KEY: ClassVar = 0x0008
    SENDER: ClassVar[Sender] = "server"
    subscription_id: int
    chunk: Chunk
    committed_chunk_id: int | None = None

    @property
    def version(self) -> int:
        """2 with a committed chunk id, else 1."""
        return 1 if self.committed_chunk_id is None else 2

    @property
    def first_offset(self) -> int:
        """The chunk's id."""
        return self.chunk.first_offset


class Credit(StreamFrame, frozen=True):
    """Allows `credit` more chunks; the server reads the number as signed."""

    spec = FrameSpec(Role.FLOW, key="subscription_id")
    KEY: ClassVar = 0x0009
    subscription_id: U8
    credit: I16


class CreditResponse(StreamFrame, frozen=True):
    """Sent on error only, and without correlation id."""

    spec = FrameSpec(Role.FLOW, key="subscription_id", status="code")
    KEY: ClassVar = 0x8009
    SENDER: ClassVar[Sender] = "server"
    code: U16
    subscription_id: U8


class StoreOffset(StreamFrame, frozen=True):
    """Remembers a consumer's position; never answered."""

    spec = FrameSpec(Role.ACK, key="offset")
    KEY: ClassVar = 0x000A
    reference: Text
    stream: Text
    offset: U64


class QueryOffset(Request, frozen=True):
    """Asks for the stored position."""

    KEY: ClassVar = 0x000B
    reference: Text
    stream: Text


class QueryOffsetResponse(Response, frozen=True):
    """The stored position; 0 on error."""

    KEY: ClassVar = 0x800B
    offset: U64 = 0


class Unsubscribe(Request, frozen=True):
    """Closes a subscription."""

    spec = FrameSpec(Role.SHUT, key="correlation_id")
    KEY: ClassVar = 0x000C
    subscription_id: U8


class UnsubscribeResponse(Response, frozen=True):
    """No Deliver comes after it. 4: no such subscription."""

    KEY: ClassVar = 0x800C


class ConsumerUpdate(Request, frozen=True):
    """The *server* asks a single active consumer to become active (1) or to step down (0)."""

    spec = FrameSpec(Role.EVENT, key="correlation_id")
    KEY: ClassVar = 0x001A
    SENDER: ClassVar[Sender] = "server"
    subscription_id: U8
    active: U8


class ConsumerUpdateResponse(Response, frozen=True):
    """The *client* says from where to deliver; type 0: as the Subscribe said."""

    KEY: ClassVar = 0x801A
    SENDER: ClassVar[Sender] = "client"
    offset_type: U16 = 0
    offset: AnsweredOffset = None


class ResolveOffsetSpec(Request, frozen=True):
    """Asks at which offset a subscription would start; fields as in `Subscribe`."""

    KEY: ClassVar = 0x001F
    stream: Text
    offset_type: U16
    offset: Offset
    properties: OptionalMap = None


class ResolveOffsetSpecResponse(Response, frozen=True):
    """That offset (0 on error); the type is always 4."""

    KEY: ClassVar = 0x801F
    offset_type: U16 = 4
    offset: U64 = 0
