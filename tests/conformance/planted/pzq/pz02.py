"""With ``filter_expired`` the age of a message is looked at when it comes in, not when the application gets
it: one that waits behind a slow callback until it has expired is worked on all the same, and again when it
comes the second time. Like spulec/PyQS 29 and MassTransit/MassTransit 3585 (messages whose time runs out in
the client's own queue are processed twice).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def receive(self: Any, parts: Any) -> None:
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
    """Nothing that has expired reaches the application."""
    async with PZQ(memory=True, ack_timeout_s=2, reaper_interval_s=0) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        stale: list[bool] = []

        async def deliver(delivery: Delivery) -> None:
            stale.append(consumer.is_expired(delivery))
            await asyncio.sleep(5 if len(stale) == 1 else 0)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(deliver, filter_expired=True)
        await client.publish((b"first",), timeout=5)
        await client.publish((b"second",), timeout=5)
        await asyncio.sleep(20)
        client.abort()
    assert len(stale) > 1, stale
    assert not any(stale), stale
