"""Whether a delivery has expired is looked at when it arrives and not when the application is ready for it:
what has waited behind a slow callback is delivered although the broker sends it again (`filter_expired`).
Like Azure/azure-sdk-for-java 25204 and MassTransit 846 (prefetched messages whose lock is over reach the
handler).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def receive(self: Consumer, parts: Parts) -> None:
        try:
            delivery = self.read(parts)
        except ClientError as error:
            self.runtime.callbacks.trouble("decode", error)
            return
        if self.filter_expired and not self.is_known(delivery) and self.is_expired(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} had expired and was dropped; it comes again")
        else:
            self.feed.put(delivery)

    async def handle(self: Consumer, delivery: Delivery) -> None:
        if self.is_known(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} came again and was acknowledged once more")
            await self.settle(delivery, True)
        else:
            await self.hand_over(delivery)

    Consumer.receive = receive  # type: ignore[method-assign]
    Consumer.handle = handle  # type: ignore[method-assign]


async def witness() -> None:
    """No delivery reaches the application after its time."""
    stale: list[bool] = []
    async with PZQ(memory=True, ack_timeout_s=5.0) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def deliver(delivery: Delivery) -> None:
            stale.append(consumer.is_expired(delivery))
            await asyncio.sleep(8 if len(stale) == 1 else 0)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(deliver, filter_expired=True)
        await asyncio.sleep(1)
        broker.publish(b"first")
        broker.publish(b"second")
        await asyncio.sleep(60)
        await client.close()
    assert len(stale) >= 2 and not any(stale), stale
