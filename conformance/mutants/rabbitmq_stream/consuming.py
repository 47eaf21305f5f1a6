"""The consuming half of the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.producing import Producing
from conformance.mutants.rabbitmq_stream.requests import Undo
from conformance.mutants.rabbitmq_stream.subscription import Arrival, Message, Start, Subscription
from fakebrokers.rabbitmq_stream.codes import Code, OffsetType
from fakebrokers.rabbitmq_stream.frames import (
    QueryOffset,
    StoreOffset,
    Subscribe,
    Unsubscribe,
)

OnMessage = Callable[[Message], Awaitable[None]]

FIRST = Start(OffsetType.FIRST)

#: the subscription whose callback runs in this context
_feeding: ContextVar[Subscription | None] = ContextVar("feeding", default=None)


class Consuming(Producing):
    """Subscriptions, each with a task of its own that feeds its callback."""

    async def subscribe(
        self,
        stream: str,
        on_message: OnMessage,
        *,
        start: Start = FIRST,
        credit: int = 10,
        properties: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> Subscription:
        """Let messages come, one at a time. Raises `ClientError`."""
        deadline = self.deadline(timeout)
        subscription = self.subscription_type(stream, start, credit, dict(properties or {}))
        await self.place(subscription, deadline)
        self.subscriptions[subscription] = asyncio.create_task(self.feed(subscription, on_message))
        return subscription

    async def place(self, subscription: Subscription, deadline: float) -> None:
        """Make a subscription at a member of its stream. Raises `ClientError`."""
        link = await self.reader_link(subscription.stream, deadline)
        subscription_id = link.core.free_subscription_id()
        start = subscription.position()
        subscription.renew()

        def accepted(answer: Any) -> None:
            if answer.code == Code.OK and not subscription.is_closed:
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

    async def feed(self, subscription: Subscription, on_message: OnMessage) -> None:
        """Surface chunk after chunk until the subscription is closed."""
        _feeding.set(subscription)
        arrived = asyncio.Event()
        subscription.wake = arrived.set
        while True:
            while subscription.arrivals:
                await self.surface(subscription, subscription.arrivals.popleft(), on_message)
                await asyncio.sleep(0)
            if subscription.is_closed:
                return
            arrived.clear()
            await arrived.wait()

    async def surface(self, subscription: Subscription, arrival: Arrival, on_message: OnMessage) -> None:
        """Give the messages of a chunk to the application, then let the next chunk come."""
        for message in subscription.messages(arrival.chunk, lambda e: self.trouble("decode", e)):
            if subscription.generation != arrival.generation:
                return
            subscription.surfaced(message)
            await self.contain_async("message", lambda message=message: on_message(message))  # type: ignore[misc]
        if subscription.generation == arrival.generation:
            subscription.processed(arrival.chunk)
            if subscription.connection is not None:
                subscription.connection.owner.flush()

    async def unsubscribe(
        self, subscription: Subscription, *, drain: bool = False, timeout: float | None = None
    ) -> None:
        """End a subscription. No message is surfaced after this; with `drain`, first all that has come."""
        deadline = self.deadline(timeout)
        connection, subscription_id = subscription.connection, subscription.subscription_id
        self.stop(subscription, drain)
        link = next((link for link in self.links if link.core is connection), None)
        try:
            if link is not None:
                answer = await link.request(Unsubscribe, subscription_id, deadline=deadline)
                if answer.code not in (Code.OK, Code.SUBSCRIPTION_ID_DOES_NOT_EXIST):
                    raise ClientError("refused", f"code {answer.code}", code=answer.code)
        finally:
            subscription.detach()
            if link is not None:
                self.leave(link)
            await self.settled([subscription], deadline)

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        """Take in no more chunks."""
        subscription.is_closed = True
        if not drain:
            subscription.renew()
        subscription.wake()

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        """Wait for the callbacks that run, but not for the one that this runs in."""
        running = {
            task
            for one in ended
            if (task := self.subscriptions.pop(one, None)) is not None and one is not _feeding.get()
        }
        if running:
            await asyncio.wait(running, timeout=max(0.0, deadline - self.now()))

    # stored offsets: any node knows them

    async def store_offset(
        self, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        """Remember a position; the server does not answer."""
        link = await self.control_link(self.deadline(timeout))
        link.core.send(StoreOffset(reference, stream, offset))
        link.settle()

    async def query_offset(self, stream: str, reference: str, timeout: float | None = None) -> int:
        """The stored position. Raises `ClientError`: refused (19) if there is none."""
        deadline = self.deadline(timeout)
        link = await self.control_link(deadline)
        answer = await link.ask(QueryOffset, reference, stream, deadline=deadline)
        return int(answer.offset)
