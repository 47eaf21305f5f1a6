"""The consuming half of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from conformance.clients.reference.kit import ClientError, Feed
from conformance.clients.reference.kit.ordered import OrderedSet
from conformance.clients.reference.rabbitmq_stream.requests import Undo
from conformance.clients.reference.rabbitmq_stream.subscription import (
    Accepts,
    Arrival,
    Message,
    Start,
    Subscription,
    Track,
)
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import StoreOffset, Subscribe, Unsubscribe

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient

OnMessage = Callable[[Message], Awaitable[None]]

FIRST = Start(OffsetType.FIRST)


class Consuming:
    """Subscriptions, each with a feed of its own.

    Attributes:
        subscriptions: Those that are not closed.
    """

    def __init__(self, client: StreamClient) -> None:
        self.client = client
        self.runtime = client.runtime
        self.links = client.links
        self.subscriptions: OrderedSet[Subscription] = OrderedSet()

    async def subscribe(
        self,
        stream: str,
        on_message: OnMessage,
        *,
        start: Start = FIRST,
        credit: int = 10,
        properties: dict[str, str] | None = None,
        accepts: Accepts | None = None,
        track: Track | None = None,
        timeout: float | None = None,
    ) -> Subscription:
        """Let messages come, one at a time, those only that `accepts` wants. Raises `ClientError`."""
        start.check()
        deadline = self.runtime.clock.deadline(timeout)
        subscription = self.runtime.part(Subscription)(stream, start, credit, dict(properties or {}))
        feed = Feed[Arrival](
            self.runtime.feeds, lambda arrival: self.deliver_message(subscription, arrival, on_message)
        )
        subscription.feed = feed
        subscription.accepts = accepts or subscription.accepts
        subscription.track = track
        self.subscriptions.add(subscription)  # from here on a close ends it
        try:
            await self.place(subscription, deadline)
            if subscription.is_closed:
                raise ClientError("closed", "the client was closed meanwhile", definite=False)
        except BaseException:
            self.drop(subscription)
            raise
        return subscription

    def drop(self, subscription: Subscription) -> None:
        """Nobody has got this subscription: what the server may have granted is taken back."""
        connection, subscription_id = subscription.connection, subscription.subscription_id
        self.subscriptions.discard(subscription)
        subscription.is_closed = True
        subscription.detach()
        subscription.feed.abort()
        for link in self.links.all:
            if link.core is connection:
                link.take_back(Unsubscribe, subscription_id)

    async def place(self, subscription: Subscription, deadline: float) -> None:
        """Make a subscription at a member of its stream. Raises `ClientError`."""
        link = await self.client.locator.reader_link(subscription.stream, deadline)
        if subscription.is_closed:
            raise ClientError("closed", "the subscription was ended meanwhile", definite=True)
        subscription_id = link.core.free_subscription_id()
        start = subscription.position()
        subscription.renew()

        def accepted(answer: Any) -> None:
            if answer.code != Code.OK:
                return
            if subscription.is_closed:  # ended while the question was under way: nobody wants it any more
                link.take_back(Unsubscribe, subscription_id)
            else:
                subscription.attach(link.core, subscription_id)

        await link.ask(
            Subscribe,
            subscription_id,
            subscription.stream,
            start.type,
            start.value,
            subscription.credit,
            subscription.properties or None,
            deadline=deadline,
            undo=Undo(Unsubscribe, (subscription_id,)),
            at_once=accepted,
        )

    async def deliver_message(
        self, subscription: Subscription, arrival: Arrival, on_message: OnMessage
    ) -> None:
        """Give the messages of a chunk to the application, then let the next chunk come."""
        callbacks = self.runtime.callbacks
        for message in subscription.messages(arrival.chunk, lambda e: callbacks.trouble("decode", e)):
            if subscription.generation != arrival.generation:
                return
            subscription.delivered(message)
            await callbacks.contain_async("message", lambda message=message: on_message(message))  # type: ignore[misc]
            if subscription.track is not None and subscription.track.count(message.offset):
                self.store_handled(subscription)
        if subscription.generation == arrival.generation:
            subscription.processed(arrival.chunk)
            if subscription.connection is not None:
                subscription.connection.owner.flush()

    def store_handled(self, subscription: Subscription) -> None:
        """Store what was handled since the last time; what cannot be sent now is due at the next."""
        track, link = subscription.track, self.links.control
        if track is None or track.handled in (None, track.stored) or link is None:
            return
        track.stored = track.handled
        link.core.send(StoreOffset(track.name, subscription.stream, track.handled))
        link.settle()

    async def unsubscribe(
        self, subscription: Subscription, *, drain: bool = False, timeout: float | None = None
    ) -> None:
        """End a subscription. No message is delivered after this; with `drain`, first all that has come."""
        deadline = self.runtime.clock.deadline(timeout)
        connection, subscription_id = subscription.connection, subscription.subscription_id
        self.stop(subscription, drain)
        link = next((link for link in self.links.all if link.core is connection), None)
        try:
            if link is not None:
                answer = await link.request(Unsubscribe, subscription_id, deadline=deadline)
                if answer.code not in (Code.OK, Code.SUBSCRIPTION_ID_DOES_NOT_EXIST):
                    raise ClientError("refused", f"code {answer.code}", code=answer.code)
        finally:
            subscription.detach()
            if link is not None:
                self.client.locator.leave(link)
            await self.settled([subscription], deadline)

    def give_credit(self, subscription: Subscription, chunks: int) -> None:
        """Let more chunks come, besides those that the client asks for by itself."""
        if subscription.connection is not None:
            subscription.connection.give_credit(subscription.subscription_id, chunks)
            subscription.connection.owner.flush()

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        """Take in no more chunks."""
        subscription.is_closed = True
        self.store_handled(subscription)
        if not drain:
            subscription.renew()
        subscription.feed.end()

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        """Wait for the callbacks that run, but not for the one that this runs in."""
        self.subscriptions.difference_update(ended)
        left = max(0.0, deadline - self.runtime.clock.now())
        await asyncio.gather(*(one.feed.ended(left) for one in ended))

    @property
    def buffered_bytes(self) -> int:
        """Chunks that wait for the application."""
        return sum(len(arrival.chunk.data) for one in self.subscriptions for arrival in one.feed)
