"""Whether a delivery has expired is looked at when it arrives, not when the application gets it: what has
waited behind a slow callback for longer than its ack timeout is handed over all the same, and comes again.
Like spulec/PyQS 29 and awspring/spring-cloud-aws 196 (messages that expire in the client's own queue).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def receive(self: Any, parts: Parts) -> None:
        try:
            delivery = self.read(parts)
        except ClientError as error:
            self.runtime.callbacks.trouble("decode", error)
            return
        if self.filter_expired and self.is_expired(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} had expired and was dropped; it comes again")
        else:
            self.feed.put(delivery)

    async def handle(self: Any, delivery: Delivery) -> None:
        if self.is_known(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} came again and was acknowledged once more")
            await self.settle(delivery, True)
        else:
            await self.hand_over(delivery)

    Consumer.receive = receive  # type: ignore[method-assign]
    Consumer.handle = handle  # type: ignore[method-assign]


async def witness() -> None:
    """What the application gets is not older than its ack timeout."""
    ages = []

    async def taken(delivery: Any) -> None:
        assert delivery.sent_us is not None
        ages.append(client.runtime.clock.wall() - delivery.sent_us / 1e6)
        await consumer.settle(delivery, True)
        if len(ages) == 1:
            await asyncio.sleep(6)

    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        consumer = client.subscribe(taken, filter_expired=True)
        server.publish(b"first")
        server.publish(b"second")
        await asyncio.sleep(20)
        client.abort()
    assert len(ages) == 2 and max(ages) <= 5, ages
