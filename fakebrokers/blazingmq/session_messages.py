"""Messages of a session: PUT and ACK, PUSH and CONFIRM (docs/protocols/blazingmq.md, 2 to 4)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fakebrokers.blazingmq.codes import UNSET_GUID, AckStatus, Compression, PushFlag
from fakebrokers.blazingmq.events import padded
from fakebrokers.blazingmq.frames import (
    Ack,
    AckMessage,
    Confirm,
    Push,
    PushMessage,
    Put,
    PutMessage,
    Reject,
)
from fakebrokers.blazingmq.handle import Handle
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.options import SubscriptionInfo, write_options
from fakebrokers.blazingmq.properties import Style, inflate, write_content
from fakebrokers.blazingmq.session_base import Handlers, SessionBase
from fakebrokers.core.frames import Frame
from fakebrokers.errors import WireError
from fakebrokers.extras import needs

with needs("blazingmq", "the fake BlazingMQ"):
    from crc32c import crc32c

#: Events have the numbers of queues signed, requests unsigned.
_U32 = 0xFFFFFFFF
#: By itself: each look into an enum costs, and this is asked of every message.
_SUCCESS = AckStatus.SUCCESS
_COMPRESSIONS = frozenset(Compression)


class Messages:
    """The messages of one session.

    Attributes:
        crcs: How many came with the CRC of their data, of their data with padding (the Node SDK), or with
            another one.
    """

    def __init__(self, session: SessionBase) -> None:
        self._session = session
        self._pushed: list[PushMessage] = []
        self.crcs = {"data": 0, "padded": 0, "wrong": 0}
        self.handlers: Handlers = {Put: self._put, Confirm: self._confirm, Reject: self._nothing}

    # from producers

    def _put(self, event: Put, now: float) -> None:
        """Post the messages of an event, up to the first one that a broker cannot read.

        What the session answers by itself comes first. A queue's answers come once the whole event is done;
        of one GUID only the first may be positive.
        """
        own: list[AckMessage] = []
        queued: list[AckMessage] = []
        answered: set[bytes] = set()
        for message in event.messages:
            is_sound = self._check_crc(message)
            readable = _readable(message)
            if readable is None:
                break
            handle = self._session.handles.get(message.queue_id & _U32)
            if handle is None or not is_sound or self._lacks_guid(message):
                own.append(self._refused(message))
                continue
            ack = self._post(handle, readable, now)
            if ack is None:
                continue
            if handle.queue.domain.mode == "broadcast":
                own.append(ack)
            elif ack.status or ack.guid not in answered:
                queued.append(ack)
            answered.add(ack.guid)
        if own or queued:
            self._session.link.say(Ack((*own, *queued)))

    def _lacks_guid(self, message: PutMessage) -> bool:
        return self._session.makes_guids and message.guid == UNSET_GUID

    def _post(self, handle: Handle, message: PutMessage, now: float) -> AckMessage | None:
        """Put one message into its queue; its ACK if it wants one, or has to get one."""
        session = self._session
        if session.makes_guids:
            guid, correlation_id, wants_ack = message.guid, 0, message.wants_ack
        else:
            guid = session.broker.guids.new(now)
            correlation_id = message.correlation_id
            wants_ack = correlation_id != 0
        stored = Message(
            guid, message.data, message.has_properties, message.schema_id, message.compression, now
        )
        status = handle.post(stored)
        if status is _SUCCESS and not wants_ack:
            return None
        status_code = session.profile.statuses.get(status, status)
        return AckMessage(message.queue_id, guid, int(status_code), correlation_id)

    def _refused(self, message: PutMessage) -> AckMessage:
        """The answer to a message that no queue has seen."""
        return refusal(message, AckStatus.UNKNOWN, makes_guids=self._session.makes_guids)

    def _check_crc(self, message: PutMessage) -> bool:
        if crc32c(message.data) == message.crc:
            found = "data"
        else:
            found = "padded" if crc32c(padded(message.data)) == message.crc else "wrong"
        self.crcs[found] += 1
        return found != "wrong" or not self._session.profile.checks_crc

    # to consumers

    def push(
        self, handle: Handle, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool
    ) -> None:
        """Collect a delivery; `flush` says it."""
        data, schema_id, compression = message.data, message.schema_id, message.compression
        if schema_id and message.has_properties and not self._session.knows_new_properties:
            try:
                data = write_content(message.content, Style.OLD, Compression.NONE)
            except WireError:
                return  # a broker cannot convert them either, and raises an alarm
            schema_id, compression = 0, Compression.NONE
        schema_id = handle.queue.learner.hand_out(handle.received, schema_id)
        flags = PushFlag.OUT_OF_ORDER if out_of_order else 0
        if message.has_properties:
            flags |= PushFlag.MESSAGE_PROPERTIES
        options = write_options(infos, self._session.profile.push_option)
        self._pushed.append(
            PushMessage(_signed(handle.q_id), message.guid, data, int(flags), schema_id, compression, options)
        )

    def flush(self) -> None:
        """Say all deliveries in one event, if the client reads."""
        if self._pushed and self._session.link.writable:
            pushed, self._pushed = self._pushed, []
            self._session.link.say(Push(tuple(pushed)))

    def forget(self) -> None:
        """Deliver nothing of what was collected."""
        self._pushed.clear()

    def _confirm(self, event: Confirm, now: float) -> None:
        for message in event.messages:
            handle = self._session.handles.get(message.queue_id & _U32)
            if handle is None:
                continue
            mode = handle.queue.domain.mode
            if mode != "broadcast" and (mode == "fanout") == (message.sub_id != 0):
                handle.confirm(message.guid, message.sub_id)

    def _nothing(self, frame: Frame, now: float) -> None:
        """A broker takes REJECT from other brokers only."""


def _readable(message: PutMessage) -> PutMessage | None:
    """A message as a broker stores it: properties in the old style are inflated, with their payload.

    None: it drops the message and what comes after it in the event, without an answer.
    """
    if not message.data:
        return None
    if message.compression == Compression.NONE and not message.schema_id:
        return message
    if message.compression not in _COMPRESSIONS or (message.schema_id and not message.has_properties):
        return None
    if message.schema_id or not message.has_properties:
        return message
    try:
        return replace(message, data=inflate(message.data), compression=Compression.NONE)
    except WireError:
        return None


def refusal(message: PutMessage, status: int, *, makes_guids: bool) -> AckMessage:
    """The ACK of a message that was not stored."""
    if makes_guids:
        return AckMessage(message.queue_id, message.guid, status)
    return AckMessage(message.queue_id, UNSET_GUID, status, message.correlation_id)


def _signed(number: int) -> int:
    """A queue's number as the events have it."""
    return number - (1 << 32) if number >= 1 << 31 else number
