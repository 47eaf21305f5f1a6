"""Defects with what is spread: ids of a connection, filters of subscriptions, partitions, sections."""

from __future__ import annotations

from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers.rabbitmq_stream.chunk import Chunk

HEADER, DATA = b"\x00\x53\x70", b"\x00\x53\x75\xa0"  #: how sections of AMQP 1.0 begin (part 3, 3.2)


@mutant("publisher-ids-go-round", tag="data", breaks=["R7"])
class PublisherIdsGoRound(Connection):
    """Gives the next id to a publisher, also where another one has it."""

    def free_publisher_id(self) -> int:
        self._next_publisher_id = (self._next_publisher_id + 1) % 256
        return self._next_publisher_id


@mutant("subscription-ids-go-round", tag="data", breaks=["R9"])
class SubscriptionIdsGoRound(Connection):
    """Gives the next id to a subscription, also where another one has it."""

    def free_subscription_id(self) -> int:
        self._next_subscription_id = (self._next_subscription_id + 1) % 256
        return self._next_subscription_id


@mutant("one-filter-for-all-subscriptions", tag="data", breaks=["R10", "R21"])
class OneFilterForAllSubscriptions(Consuming):
    """Looks at the messages of all subscriptions with the filter of the last one."""

    async def subscribe(self, *args: Any, **more: Any) -> Subscription:
        made = await super().subscribe(*args, **more)
        if more.get("accepts") is not None:
            for each in self.subscriptions:
                each.accepts = made.accepts
        return made


@mutant("first-partition-stays", tag="data", breaks=["R9", "R19"])
class FirstPartitionStays(SuperStreams):
    """Ends the subscriptions of all partitions but the first."""

    async def unsubscribe(self, subscriptions: list[Subscription], **more: Any) -> None:
        await super().unsubscribe(subscriptions[1:] or subscriptions, **more)


@mutant("sections-are-opened", tag="data", breaks=["R10"])
class SectionsAreOpened(Subscription):
    """Delivers the data section of what looks like a message of AMQP 1.0 with a header, not its bytes."""

    def records(self, chunk: Chunk, report: Any) -> Any:
        for offset, body in super().records(chunk, report):
            found = body.rfind(DATA) if body.startswith(HEADER) else -1
            size = body[found + len(DATA)] if found > 0 else 0
            yield offset, body[found + 5 : found + 5 + size] if found > 0 else body


@mutant("partitions-before-a-refusal-stay", tag="life-cycle", breaks=["R19"])
class PartitionsBeforeARefusalStay(SuperStreams):
    """Goes on to read the partitions before the one that was refused, and reports the refusal."""

    async def subscribe(self, *args: Any, **more: Any) -> list[Subscription]:
        consuming: Any = self.client.consuming
        drop = consuming.drop
        consuming.drop = lambda one: None
        try:
            return await super().subscribe(*args, **more)
        finally:
            consuming.drop = drop


@mutant("publishers-of-any-connection", tag="data", breaks=["R6", "R7"])
class PublishersOfAnyConnection(Connection):
    """Finds the publisher of a confirm by its id alone, on the newest connection that has such an id."""

    def find_publisher(self, publisher_id: int) -> Publisher | None:
        cores = reversed([link.core for link in self.owner.client.links.all])  # type: ignore[attr-defined]
        return next((one.publishers[publisher_id] for one in cores if publisher_id in one.publishers), None)
