"""When a callback fails, everything that has arrived behind its message is thrown away too: those messages
are neither delivered nor given back, and come only after their ack timeout. Like karafka/karafka-rdkafka
473 (an error in one message discards the rest of the batch).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    async def hand_over(self: Consumer, delivery: Delivery) -> None:
        try:
            await self.deliver_message(delivery)
        except Exception as error:
            self.runtime.callbacks.failed("message", error)
            await self.settle(delivery, False)
            self.feed.clear()

    Consumer.hand_over = hand_over  # type: ignore[method-assign]


async def witness() -> None:
    """The others are delivered at once."""
    seen = []
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def take(delivery: Delivery) -> None:
            await asyncio.sleep(0.1)
            seen.append(delivery.body[0])
            if seen == [b"1"]:
                raise RuntimeError("no database")
            await consumer.settle(delivery, True)

        consumer = client.subscribe(take)
        for body in (b"1", b"2", b"3"):
            broker.publish(body)
        await asyncio.sleep(3)
        await client.close()
    assert {b"2", b"3"} <= set(seen), seen
