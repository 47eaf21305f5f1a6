"""A message that the application gives back counts as handled: the memory of settled messages takes it in
whatever the outcome was. When it comes again, it is acknowledged and not delivered: it is lost. Like
spinnaker/echo 327 (a message that was begun and failed is taken for a double when it comes again).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import KEYS_MAX, Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    async def settle(self: Consumer, delivery: Delivery, positive: bool) -> None:
        self.settled[delivery.key] = None
        while len(self.settled) > KEYS_MAX:
            del self.settled[next(iter(self.settled))]
        self.socket.send(*self.acknowledgement(delivery, positive))

    Consumer.settle = settle  # type: ignore[method-assign]


async def witness() -> None:
    """A message that was given back is delivered again."""
    seen: list[bytes] = []
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def deliver(delivery: Delivery) -> None:
            seen.append(delivery.body[0])
            await consumer.settle(delivery, len(seen) > 1)

        consumer = client.subscribe(deliver)
        broker.publish(b"order")
        await asyncio.sleep(30)
        await client.close()
    assert seen == [b"order", b"order"], seen
