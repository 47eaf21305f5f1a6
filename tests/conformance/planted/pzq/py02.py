"""A message counts as settled as soon as it is handed to the application: one that the application failed
at is acknowledged when it comes again, and nobody has processed it. Like rabbitmq/rabbitmq-stream-dotnet-
client 407 (the offset is noted before the handler has run) and oleksiyk/kafka 59.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    plain = Consumer.hand_over

    async def hand_over(self: Any, delivery: Delivery) -> None:
        self.settled[delivery.key] = None
        await plain(self, delivery)

    Consumer.hand_over = hand_over  # type: ignore[method-assign]


async def witness() -> None:
    """What the callback failed at is delivered once more."""
    seen = []
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def take(delivery: Delivery) -> None:
            seen.append(delivery.body)
            if len(seen) == 1:
                raise RuntimeError("no database")
            await consumer.settle(delivery, True)

        consumer = client.subscribe(take)
        broker.publish(b"x")
        await asyncio.sleep(5)
        await client.close()
    assert len(seen) == 2, seen
