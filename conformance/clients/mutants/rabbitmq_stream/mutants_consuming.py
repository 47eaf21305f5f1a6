"""Defects in subscriptions, their ids, their callbacks and their credit (catalogue section RMQS-4)."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Callbacks, ClientError, Feed
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming, OnMessage
from conformance.clients.reference.rabbitmq_stream.subscription import Arrival, Message, Report, Subscription
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import (
    ConsumerUpdate,
    ConsumerUpdateResponse,
    CreditResponse,
    Deliver,
    Unsubscribe,
)

# the end of subscriptions


@mutant("unsubscribes-at-once", tag="life-cycle", breaks=["R9", "X7"])
class UnsubscribesAtOnce(Consuming):
    """Returns from unsubscribe while messages that have come still wait for their callbacks."""

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        super().stop(subscription, drain=True)

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        self.subscriptions.difference_update(ended)


# subscription ids


@mutant("chunk-for-anybody", tag="data", breaks=["R9", "R10"])
class ChunkForAnybody(Connection):
    """Gives a chunk for an unknown subscription to the first one that there is."""

    def delivered(self, frame: Deliver) -> None:
        known = self.subscriptions.get(frame.subscription_id)
        for subscription in [known] if known is not None else list(self.subscriptions.values())[:1]:
            subscription.deliver(frame.chunk)


@mutant("one-callback-per-connection", tag="data", breaks=["R9"])
class OneCallbackPerConnection(Connection):
    """Gives every chunk to the subscription that came last."""

    def delivered(self, frame: Deliver) -> None:
        for subscription in list(self.subscriptions.values())[-1:]:
            subscription.deliver(frame.chunk)


@mutant("reused-id-leads-to-the-old-callback", tag="data", breaks=["R9"])
class ReusedIdLeadsToTheOldCallback(Connection):
    """Remembers for good to which subscription an id belonged first."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.remembered: dict[int, Subscription] = {}

    def delivered(self, frame: Deliver) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is not None:
            self.remembered.setdefault(frame.subscription_id, subscription).deliver(frame.chunk)


@mutant("unsubscribed-still-reads", tag="life-cycle", breaks=["R9"])
class UnsubscribedStillReads(Consuming):
    """Ends a subscription at the server, and goes on reading it."""

    async def unsubscribe(
        self, subscription: Subscription, *, drain: bool = False, timeout: float | None = None
    ) -> None:
        link = next(link for link in self.links.all if link.core is subscription.connection)
        await link.request(
            Unsubscribe, subscription.subscription_id, deadline=self.runtime.clock.deadline(timeout)
        )


@mutant("refused-subscription-kept", tag="life-cycle", breaks=["R5", "R9"])
class RefusedSubscriptionKept(Consuming):
    """Keeps a subscription, and the task that feeds it, though the server has refused it."""

    async def subscribe(self, stream: str, on_message: OnMessage, **options: Any) -> Subscription:
        try:
            return await super().subscribe(stream, on_message, **options)
        except ClientError:
            refused = Subscription(stream, options["start"], 1, {})
            refused.feed = Feed(
                self.runtime.feeds, lambda arrival: self.deliver_message(refused, arrival, on_message)
            )
            core = self.links.all[-1].core
            refused.attach(core, core._next_subscription_id)
            self.subscriptions.add(refused)
            raise


@mutant("refused-subscribe-repeated-at-once", tag="life-cycle", breaks=["R5", "R9"])
class RefusedSubscribeRepeatedAtOnce(Consuming):
    """Asks again almost at once where a stream is not available."""

    async def place(self, subscription: Subscription, deadline: float) -> None:
        while True:
            try:
                await super().place(subscription, deadline)
                return
            except ClientError as error:
                if error.code != Code.STREAM_NOT_AVAILABLE:
                    raise
                await asyncio.sleep(0.001)  # without it, virtual time would stop


@mutant("credit-response-ends-a-request", tag="life-cycle", breaks=["R11"])
class CreditResponseEndsARequest(Connection):
    """Takes a CreditResponse for the answer to the oldest request."""

    def credit_refused(self, frame: CreditResponse) -> None:
        for correlation_id in list(self.requests.waiting)[:1]:
            waiting = self.requests.waiting.pop(correlation_id)
            waiting.done(ClientError("refused", f"code {frame.code}", code=frame.code))


@mutant("credit-response-ends-the-subscription", tag="life-cycle", breaks=["R11"])
class CreditResponseEndsTheSubscription(Connection):
    """Gives up a subscription for any CreditResponse."""

    def credit_refused(self, frame: CreditResponse) -> None:
        self.subscriptions.pop(frame.subscription_id, None)


# callbacks


class _Uncontained(Callbacks):
    async def contain_async(self, callback: str, act: Any) -> None:
        await act()


@mutant("callback-error-skips-the-chunk", tag="data", breaks=["R10"], also=[_Uncontained])
class CallbackErrorSkipsTheChunk(Consuming):
    """The messages after one whose callback raised are never delivered, later chunks are."""

    async def deliver_message(
        self, subscription: Subscription, arrival: Arrival, on_message: OnMessage
    ) -> None:
        try:
            await super().deliver_message(subscription, arrival, on_message)
        except RuntimeError as error:
            self.runtime.callbacks.failed("message", error)
            subscription.processed(arrival.chunk)
            self.links.all[0].flush()


# credit


@mutant("credit-never-returned", tag="life-cycle", breaks=["R11"])
class CreditNeverReturned(Connection):
    """Gives no credit after that of the Subscribe."""

    def give_credit(self, subscription_id: int, chunks: int = 1) -> None:
        return


@mutant("credit-by-two", tag="life-cycle", breaks=["R11"])
class CreditByTwo(Connection):
    """Gives credit for two chunks when one is done with."""

    def give_credit(self, subscription_id: int, chunks: int = 1) -> None:
        super().give_credit(subscription_id, chunks + 1)


@mutant("credit-on-arrival", tag="life-cycle", breaks=["R11"])
class CreditOnArrival(Connection):
    """Gives credit for a chunk as soon as it has come, however many wait for the application."""

    def delivered(self, frame: Deliver) -> None:
        super().delivered(frame)
        super().give_credit(frame.subscription_id)

    def give_credit(self, subscription_id: int, chunks: int = 1) -> None:
        return


@mutant("credit-by-the-chunk", tag="life-cycle", breaks=["R11"])
class CreditByTheChunk(Subscription):
    """Gives the next single credit only when a chunk has come for the last one."""

    outstanding = 0

    def deliver(self, chunk: Chunk) -> None:
        self.outstanding = (self.outstanding or self.credit) - 1
        super().deliver(chunk)

    def processed(self, chunk: Chunk) -> None:
        connection, self.connection = self.connection, None
        super().processed(chunk)
        self.connection = connection
        if self.outstanding == 0 and connection is not None:
            self.outstanding = 1
            connection.give_credit(self.subscription_id)


@mutant("over-delivery-dropped", tag="data", breaks=["R11"])
class OverDeliveryDropped(Subscription):
    """Throws chunks away that it has given no credit for."""

    def deliver(self, chunk: Chunk) -> None:
        if self.owed < self.credit:
            super().deliver(chunk)


# single active consumers


@mutant("consumer-update-id-made-up", tag="wire", breaks=["R9", "R20"])
class ConsumerUpdateIdMadeUp(Connection):
    """Answers a ConsumerUpdate with a correlation id of its own."""

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        own = self.requests.take_correlation()
        super().consumer_updated(ConsumerUpdate(own, frame.subscription_id, frame.active))


@mutant("consumer-update-answered-once", tag="wire", breaks=["R9", "R20"])
class ConsumerUpdateAnsweredOnce(Connection):
    """Answers the first ConsumerUpdate only."""

    has_answered = False

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        if not self.has_answered:
            self.has_answered = True
            super().consumer_updated(frame)


@mutant("consumer-update-after-the-handler", tag="life-cycle", breaks=["R9", "R20"])
class ConsumerUpdateAfterTheHandler(Connection):
    """Answers a ConsumerUpdate when the handler is through with all that has come."""

    postponed: ConsumerUpdate | None = None

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is not None and subscription.owed:
            self.postponed = frame
        else:
            super().consumer_updated(frame)

    def give_credit(self, subscription_id: int, chunks: int = 1) -> None:
        super().give_credit(subscription_id, chunks)
        if self.postponed is not None and not self.subscriptions[subscription_id].owed:
            frame, self.postponed = self.postponed, None
            super().consumer_updated(frame)


@mutant("active-again-from-the-subscribe", tag="data", breaks=["R9", "R20"])
class ActiveAgainFromTheSubscribe(Connection):
    """Says "as subscribed" whenever it becomes active, but goes on where it stood."""

    def consumer_updated(self, frame: ConsumerUpdate) -> None:
        subscription = self.subscriptions.get(frame.subscription_id)
        if subscription is not None:
            subscription.activate(bool(frame.active))
            self.send(ConsumerUpdateResponse(frame.correlation_id, Code.OK, 0, None))
            subscription.repay()


@mutant("newest-of-a-stream-alone", tag="data", breaks=["R9"])
class NewestOfAStreamAlone(Subscription):
    """Of several subscriptions of a stream on a connection only the newest one delivers."""

    def messages(self, chunk: Chunk, report: Report) -> list[Message]:
        there = self.connection.subscriptions.values() if self.connection is not None else ()
        newest = [one for one in there if one.stream == self.stream][-1:]
        return super().messages(chunk, report) if newest in ([], [self]) else []
