"""All frames that are no control messages (docs/protocols/blazingmq.md, 1 to 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from fakebrokers.blazingmq.codes import UNSET_GUID, AckStatus, Compression, EventType, PushFlag, PutFlag
from fakebrokers.blazingmq.items import AckItems, EventItems
from fakebrokers.core.frames import Frame, FrameSpec, KeyType, Role

# as plain numbers: an enum's own "and" is slow, and these are asked of every message
_ACK_REQUESTED = int(PutFlag.ACK_REQUESTED)
_PROPERTIES = int(PutFlag.MESSAGE_PROPERTIES)
_OUT_OF_ORDER = int(PushFlag.OUT_OF_ORDER)


class EventFrame(Frame, frozen=True, gc=False):
    """An event that is no control message. `TYPE` is the number in its header."""

    TYPE: ClassVar[EventType]


class Batch(EventFrame, frozen=True):
    """An event of several `messages`.

    Its `rest` is what stands after the last message that can be read: a broker takes the messages before
    it, and drops the rest.
    """

    @property
    def guids(self) -> bytes:
        """The keys of all messages, packed."""
        return b"".join([message.key for message in getattr(self, "messages", ())])


class PutMessage(msgspec.Struct, frozen=True, gc=False):
    """A message on its way to the broker.

    Attributes:
        guid: The client's GUID; or, from a client that makes none, a correlation id in bytes 1 to 3.
        data: Properties and payload as they were sent, without padding.
        crc: CRC32-C that came with it.
        schema_id: 0: properties in the old style; see `properties`.
        compression: One of `codes.Compression`.
        options: The options area, read by nobody.
        header_words: 9; 8 from old clients, whose header ends before the schema id.
    """

    queue_id: int
    guid: bytes
    data: bytes
    flags: int = 0
    crc: int = 0
    schema_id: int = 0
    compression: int = Compression.NONE
    options: bytes = b""
    header_words: int = 9

    @property
    def key(self) -> bytes:
        """What the ACK is recognised by."""
        return self.guid

    @property
    def correlation_id(self) -> int:
        """The 24 bits that a client without GUIDs puts in their place; 0: none."""
        return int.from_bytes(self.guid[1:4])

    @property
    def wants_ack(self) -> bool:
        """Whether the flag says so."""
        return bool(self.flags & _ACK_REQUESTED)

    @property
    def has_properties(self) -> bool:
        """Whether the data begin with message properties."""
        return bool(self.flags & _PROPERTIES)


class Put(Batch, frozen=True):
    """Messages for queues."""

    kind = "PUT"
    spec = FrameSpec(
        Role.PUBLISH,
        key="guids",
        keys=KeyType.BYTES16,
        items=EventItems(),
        bulk=("messages", "rest"),
        secret=("rest",),
    )
    TYPE: ClassVar = EventType.PUT
    messages: tuple[PutMessage, ...] = ()
    rest: bytes = b""


class PushMessage(msgspec.Struct, frozen=True, gc=False):
    """A message on its way to a consumer; fields as in `PutMessage`, but:

    Attributes:
        queue_id: The receiving client's.
        options: Which subscriptions it is for; see `options`.
        header_words: 8; 7 for a header without schema id.
    """

    queue_id: int
    guid: bytes
    data: bytes
    flags: int = 0
    schema_id: int = 0
    compression: int = Compression.NONE
    options: bytes = b""
    header_words: int = 8

    @property
    def key(self) -> bytes:
        """What the CONFIRM is recognised by."""
        return self.guid

    @property
    def out_of_order(self) -> bool:
        """Whether it was not delivered at once when it came: it is redelivered, or had to wait."""
        return bool(self.flags & _OUT_OF_ORDER)

    @property
    def has_properties(self) -> bool:
        """Whether the data begin with message properties."""
        return bool(self.flags & _PROPERTIES)


class Push(Batch, frozen=True):
    """Messages for consumers."""

    kind = "PUSH"
    spec = FrameSpec(
        Role.DELIVER,
        key="guids",
        keys=KeyType.BYTES16,
        items=EventItems(),
        bulk=("messages", "rest"),
        secret=("rest",),
    )
    TYPE: ClassVar = EventType.PUSH
    messages: tuple[PushMessage, ...] = ()
    rest: bytes = b""


class AckMessage(msgspec.Struct, frozen=True, gc=False):
    """What became of one message.

    Attributes:
        status: One of `codes.AckStatus`.
        guid: The client's own, or the one that the broker made for it.
        correlation_id: For clients that make no GUIDs; 0: none.
    """

    queue_id: int
    guid: bytes
    status: int = AckStatus.SUCCESS
    correlation_id: int = 0

    @property
    def key(self) -> bytes:
        """What the PUT carried."""
        if self.correlation_id == 0:
            return self.guid
        return self.correlation_id.to_bytes(4) + UNSET_GUID[4:]


class Ack(Batch, frozen=True):
    """What became of messages. `item_words` is the size of one answer on the wire, in words of 4 bytes."""

    kind = "ACK"
    spec = FrameSpec(Role.CONFIRM, key="guids", keys=KeyType.BYTES16, items=AckItems(), secret=("rest",))
    TYPE: ClassVar = EventType.ACK
    code_names: ClassVar[Mapping[int, str]] = {status.value: status.name for status in AckStatus}
    messages: tuple[AckMessage, ...] = ()
    rest: bytes = b""
    item_words: int = 6


class ConfirmMessage(msgspec.Struct, frozen=True, gc=False):
    """A message that a consumer is done with; `sub_id` is that of openQueue."""

    queue_id: int
    guid: bytes
    sub_id: int = 0

    @property
    def key(self) -> bytes:
        """The message's GUID."""
        return self.guid


class Confirm(Batch, frozen=True):
    """Messages that consumers are done with. There is no answer."""

    kind = "CONFIRM"
    spec = FrameSpec(Role.ACK, key="guids", keys=KeyType.BYTES16, items=EventItems(), secret=("rest",))
    TYPE: ClassVar = EventType.CONFIRM
    messages: tuple[ConfirmMessage, ...] = ()
    rest: bytes = b""
    item_words: int = 6


class Reject(Batch, frozen=True):
    """Messages that a consumer could not deal with; from clients, a broker ignores it."""

    kind = "REJECT"
    spec = FrameSpec(Role.ACK, key="guids", keys=KeyType.BYTES16, items=EventItems(), secret=("rest",))
    TYPE: ClassVar = EventType.REJECT
    messages: tuple[ConfirmMessage, ...] = ()
    rest: bytes = b""
    item_words: int = 6


class HeartbeatRequest(EventFrame, frozen=True):
    """Asks for a sign of life."""

    kind = "HEARTBEAT_REQ"
    spec = FrameSpec(Role.HEARTBEAT)
    TYPE: ClassVar = EventType.HEARTBEAT_REQ


class HeartbeatResponse(EventFrame, frozen=True):
    """A sign of life."""

    kind = "HEARTBEAT_RSP"
    spec = FrameSpec(Role.HEARTBEAT)
    TYPE: ClassVar = EventType.HEARTBEAT_RSP


class OtherEvent(Frame, frozen=True):
    """An event of a type that clients and brokers do not exchange; whoever gets it ignores it."""

    spec = FrameSpec(Role.EVENT, secret=("body",))
    type: int
    body: bytes = b""


EVENT_FRAMES = (Put, Push, Ack, Confirm, Reject, HeartbeatRequest, HeartbeatResponse, OtherEvent)
