"""What a client has opened of a queue: a stream for each app that it reads, one for what it writes.

docs/protocols/blazingmq.md, 7 and 9.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from fakebrokers.blazingmq.flow import Flow
from fakebrokers.blazingmq.message import Message
from fakebrokers.blazingmq.options import SubscriptionInfo


class Consumer(NamedTuple):
    """One consumer of a subscription, as it was configured.

    Attributes:
        number: What deliveries carry.
        expression: "" for everything.
        turns: Messages in a row, when it is this consumer's turn.
    """

    number: int
    expression: str = ""
    max_messages: int = 0
    max_bytes: int = 0
    priority: int = 0
    turns: int = 1


class Unconfirmed(NamedTuple):
    """A message that a consumer has, and the subscription that it counts for."""

    message: Message
    flow: Flow


class Opened(ABC):
    """All streams of a handle.

    Attributes:
        streams: By app.
    """

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}

    @property
    @abstractmethod
    def takes_messages(self) -> bool:
        """Whether the client reads, and stays."""

    @property
    @abstractmethod
    def max_delivery_attempts(self) -> int:
        """The limit of the queue's domain; 0: none."""

    @abstractmethod
    def push(self, message: Message, infos: Sequence[SubscriptionInfo], out_of_order: bool) -> None:
        """Deliver a message for these subscriptions."""

    @property
    def reads(self) -> int:
        """Readers of all streams."""
        return sum(stream.reads for stream in self.streams.values())

    @property
    def writes(self) -> int:
        """Writers."""
        return sum(stream.writes for stream in self.streams.values())

    @property
    def unconfirmed(self) -> int:
        """Messages that the client has."""
        return sum(len(stream.unconfirmed) for stream in self.streams.values())

    def stream_numbered(self, sub_id: int) -> Stream | None:
        """The stream to which the client has given that number."""
        return next((each for each in self.streams.values() if each.sub_id == sub_id), None)


class Stream:
    """What a handle does with one app.

    Attributes:
        sub_id: The client's number of it.
        reads, writes: How often it was opened for each.
        unconfirmed: What the client has, by GUID, in the order of delivery.
    """

    def __init__(self, handle: Opened, app_id: str, sub_id: int) -> None:
        self.handle = handle
        self.app_id = app_id
        self.sub_id = sub_id
        self.reads = 0
        self.writes = 0
        self.unconfirmed: dict[bytes, Unconfirmed] = {}
        self._flows: dict[int, Flow] = {}
        self._consumers: tuple[Consumer, ...] = ()

    @property
    def configured(self) -> bool:
        """Whether it takes messages."""
        return bool(self._consumers)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its subscriptions."""
        return [consumer.number for consumer in self._consumers]

    @property
    def consumers(self) -> tuple[Consumer, ...]:
        """Those that it takes messages for, once its app puts all subscriptions together."""
        return self._consumers

    def flow(self, consumer: Consumer) -> Flow:
        """What a consumer has unconfirmed, with these limits; the counts outlive a configuration."""
        flow = self._flows.get(consumer.number)
        if flow is None:
            flow = self._flows[consumer.number] = Flow(consumer.max_messages, consumer.max_bytes)
        else:
            flow.limit(consumer.max_messages, consumer.max_bytes)
        return flow

    def configure(self, consumers: Sequence[Consumer]) -> None:
        """Take messages for these, once its app puts all subscriptions together; none at all: nothing."""
        self._consumers = tuple(consumers)

    def deliver(self, message: Message, takers: Sequence[Subscriber], *, out_of_order: bool) -> None:
        """Push a message to the client; it is unconfirmed from here on. What a stream has is left out."""
        new = [taker for taker in takers if message.guid not in taker.stream.unconfirmed]
        if new:
            infos = [taker.stream.track(message, taker) for taker in new]
            self.handle.push(message, infos, out_of_order)

    def track(self, message: Message, taker: Subscriber) -> SubscriptionInfo:
        """Count a message that is about to be pushed."""
        self.unconfirmed[message.guid] = Unconfirmed(message, taker.flow)
        taker.flow.add(message.size)
        most = self.handle.max_delivery_attempts
        return SubscriptionInfo(taker.consumer.number, message.attempts_byte(self.app_id, most))

    def confirm(self, guid: bytes) -> Flow | None:
        """The client is done with a message; the subscription that takes more because of it."""
        known = self.unconfirmed.pop(guid, None)
        return known.flow if known is not None and known.flow.remove(known.message.size) else None

    def give_back(self) -> list[Message]:
        """What is unconfirmed goes back to the app."""
        messages = [each.message for each in self.unconfirmed.values()]
        self.unconfirmed.clear()
        self._flows = {number: flow for number, flow in self._flows.items() if number in self.numbers}
        for flow in self._flows.values():
            flow.empty()
        return messages


class Subscriber:
    """A consumer of a stream, in its group's turn."""

    def __init__(self, stream: Stream, consumer: Consumer, flow: Flow) -> None:
        self.stream = stream
        self.consumer = consumer
        self.flow = flow
        self._left = consumer.turns

    @property
    def info(self) -> SubscriptionInfo:
        """What a delivery that nobody confirms says."""
        return SubscriptionInfo(self.consumer.number)

    @property
    def can_take(self) -> bool:
        """Whether it may have one more, and its client reads."""
        return not self.flow.full and self.stream.handle.takes_messages

    def taken(self) -> bool:
        """It got one; whether its turn is over."""
        self._left -= 1
        if self._left:  # of one with no turns at all it is never over
            return False
        self._left = self.consumer.turns
        return True
