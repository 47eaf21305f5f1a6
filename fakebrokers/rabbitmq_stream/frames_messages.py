"""Frames that carry messages, and those that open, control and close publishers and subscriptions
(docs/protocols/rabbitmq-stream.md, 3, 6 and 8).
"""

from __future__ import annotations

from typing import ClassVar

from fakebrokers.core.frames import FrameSpec, Role
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.frames_base import Request, Response, Sender, StreamFrame
from fakebrokers.rabbitmq_stream.items import ConfirmedItems, DeliveredItems, FailedItems, PublishedItems
from fakebrokers.rabbitmq_stream.wiretypes import (
    I16,
    U8,
    U16,
    U64,
    AnsweredOffset,
    Errors,
    InitialCredit,
    Offset,
    OptionalMap,
    PackedIds,
    Text,
)


class DeclarePublisher(Request, frozen=True):
    """Opens a publisher; an empty reference means none, and no deduplication."""

    spec = FrameSpec(Role.OPEN, key="correlation_id")
    KEY: ClassVar = 0x0001
    publisher_id: U8
    reference: Text
    stream: Text


class DeclarePublisherResponse(Response, frozen=True):
    """2: no such stream; 16: no permission; 17: id or reference taken, or too long."""

    KEY: ClassVar = 0x8001


class Publish(StreamFrame, frozen=True):
    """Messages for a stream; `publishing.publish` builds one from ids and bodies.

    Attributes:
        publisher_id: Of this connection.
        count: Entries; of a frame that was read as counted, whatever its count field claimed.
        publishing_ids: One u64 per entry, packed.
        entries: The entries back to back, as a chunk stores them (see `entries`).
        records: Messages, batch counts expanded as their headers claim.
        filter_values: Version 2 only: one per entry, None for none.
        version: 1, or 2 with filter values.
        batches: How many of the entries are sub-entry batches. Not on the wire.
        claimed: What the count field says; None: `count`. Flow control believes it.
    """

    spec = FrameSpec(
        Role.PUBLISH, "publishing_ids", PublishedItems(), bulk=("entries",), scope="publisher_id"
    )
    KEY: ClassVar = 0x0002
    publisher_id: int
    count: int
    publishing_ids: bytes
    entries: bytes
    records: int
    filter_values: tuple[str | None, ...] = ()
    version: int = 1
    batches: int = 0
    claimed: int | None = None


class PublishConfirm(StreamFrame, frozen=True):
    """Messages that are stored: their publishing ids, one u64 each, packed."""

    spec = FrameSpec(Role.CONFIRM, "publishing_ids", ConfirmedItems(), scope="publisher_id")
    KEY: ClassVar = 0x0003
    SENDER: ClassVar[Sender] = "server"
    publisher_id: U8
    publishing_ids: PackedIds


class PublishError(StreamFrame, frozen=True):
    """Messages that are not stored: pairs of publishing id and response code."""

    spec = FrameSpec(Role.REJECT, "publishing_ids", FailedItems(), scope="publisher_id")
    KEY: ClassVar = 0x0004
    SENDER: ClassVar[Sender] = "server"
    publisher_id: U8
    errors: Errors

    @property
    def publishing_ids(self) -> tuple[int, ...]:
        """The ids without their codes."""
        return tuple([publishing_id for publishing_id, _ in self.errors])


class QueryPublisherSequence(Request, frozen=True):
    """Asks for the highest publishing id that was stored for a reference."""

    KEY: ClassVar = 0x0005
    reference: Text
    stream: Text


class QueryPublisherSequenceResponse(Response, frozen=True):
    """That id; 0 if there is none, and on error."""

    KEY: ClassVar = 0x8005
    sequence: U64 = 0


class DeletePublisher(Request, frozen=True):
    """Closes a publisher."""

    spec = FrameSpec(Role.SHUT, key="correlation_id")
    KEY: ClassVar = 0x0006
    publisher_id: U8


class DeletePublisherResponse(Response, frozen=True):
    """18: no such publisher."""

    KEY: ClassVar = 0x8006


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
