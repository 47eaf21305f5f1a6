"""Consumers with one defect in how they acknowledge, and in what they make of copies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.sockets import Parts

WHILE_S = 0.05


@mutant("acknowledges-on-arrival", tag="data", breaks=["P8", "P9"], aims=["PZQ-2.16"])
class AcknowledgesOnArrival(Consumer):
    """Acknowledges each message before the application has seen it."""

    async def hand_over(self, delivery: Delivery) -> None:
        self.socket.send(*self.acknowledgement(delivery, True))
        await super().hand_over(delivery)


@mutant("delimiter-in-acks", tag="wire", breaks=["P8"])
class DelimiterInAcks(Consumer):
    """Puts an empty part before the key of an acknowledgement."""

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        pzq_id, *rest = super().acknowledgement(delivery, positive)
        return (pzq_id, b"", *rest)


@mutant("acknowledges-twice", tag="wire", breaks=["P8"])
class AcknowledgesTwice(Consumer):
    """Sends every acknowledgement twice."""

    async def settle(self, delivery: Delivery, positive: bool) -> None:
        await super().settle(delivery, positive)
        self.socket.send(*self.acknowledgement(delivery, positive))


@mutant("never-gives-back", tag="data", breaks=["P8"])
class NeverGivesBack(Consumer):
    """Sends no negative acknowledgements."""

    async def settle(self, delivery: Delivery, positive: bool) -> None:
        if positive:
            await super().settle(delivery, positive)


@mutant("failure-is-success", tag="data", breaks=["P8", "P9"])
class FailureIsSuccess(Consumer):
    """Acknowledges a message positively whatever came of it."""

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        return super().acknowledgement(delivery, True)


@mutant("failures-are-hidden", tag="life-cycle", breaks=["P8", "P9"])
class FailuresAreHidden(Consumer):
    """Does not report that a callback has failed."""

    async def hand_over(self, delivery: Delivery) -> None:
        try:
            await self.deliver_message(delivery)
        except Exception:
            await self.settle(delivery, False)


@mutant("ends-when-late", tag="life-cycle", breaks=["P9"])
class EndsWhenLate(Consumer):
    """Stops consuming when a callback has taken longer than the ack timeout."""

    ended = False

    async def hand_over(self, delivery: Delivery) -> None:
        if not self.ended:
            await super().hand_over(delivery)
            self.ended = self.is_expired(delivery)


@mutant("settling-asks-first", tag="life-cycle", breaks=["P8"])
class SettlingAsksFirst(PzqClient):
    """Asks the monitor whether the broker is there before it acknowledges, and waits for the answer."""

    def subscribe(
        self, deliver_message: Callable[[Delivery], Awaitable[None]], *, filter_expired: bool = False
    ) -> Consumer:
        consumer = super().subscribe(deliver_message, filter_expired=filter_expired)
        settle = consumer.settle

        async def asking(delivery: Delivery, positive: bool) -> None:
            await self.inquirer.ask()
            await settle(delivery, positive)

        consumer.settle = asking  # type: ignore[method-assign]
        return consumer


# copies


@mutant("seen-is-settled", tag="data", breaks=["P6", "P9"])
class SeenIsSettled(Consumer):
    """Acknowledges a copy because it has delivered the message before, settled or not."""

    async def hand_over(self, delivery: Delivery) -> None:
        self.settled[delivery.key] = None
        await super().hand_over(delivery)


@mutant("seen-is-dropped", tag="data", breaks=["P6", "P9"])
class SeenIsDropped(Consumer):
    """Drops every copy of a message that it has delivered once, without an answer."""

    def __init__(self, *args: object, **options: object) -> None:
        self.seen: set[bytes] = set()
        super().__init__(*args, **options)  # type: ignore[arg-type]

    async def handle(self, delivery: Delivery) -> None:
        if delivery.key not in self.seen:
            self.seen.add(delivery.key)
            await super().handle(delivery)


@mutant("copies-are-news", tag="data", breaks=["P6"])
class CopiesAreNews(Consumer):
    """Delivers copies of what was settled, although it says that it does not."""

    def is_known(self, delivery: Delivery) -> bool:
        return False


@mutant("acknowledges-in-a-while", tag="data", breaks=["P8"])
class SettlesInAWhile(Consumer):
    """Sends acknowledgements a little later, by when the socket may be closed."""

    is_closed = False

    async def settle(self, delivery: Delivery, positive: bool) -> None:
        asyncio.get_running_loop().call_later(WHILE_S, self.later, delivery, positive)

    def later(self, delivery: Delivery, positive: bool) -> None:
        if not self.is_closed:
            self.socket.send(*self.acknowledgement(delivery, positive))

    def close(self) -> None:
        self.is_closed = True
        super().close()
