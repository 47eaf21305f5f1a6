"""Whether a delivery has expired is looked at when it arrives, not when its turn comes: what has expired
behind a slow callback reaches the application all the same. Like Azure/azure-service-bus 152 (prefetched
messages whose lock is over by the time of the callback).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def receive(self: Any, parts: tuple[bytes, ...]) -> None:
        try:
            delivery = self.read(parts)
        except ClientError as error:
            self.runtime.callbacks.trouble("decode", error)
            return
        if self.filter_expired and self.is_expired(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} had expired and was dropped; it comes again")
        else:
            self.feed.put(delivery)

    async def handle(self: Any, delivery: Any) -> None:
        if self.is_known(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} came again and was acknowledged once more")
            await self.settle(delivery, True)
        else:
            await self.hand_over(delivery)

    Consumer.receive = receive  # type: ignore[method-assign]
    Consumer.handle = handle  # type: ignore[method-assign]


async def witness() -> None:
    """No message reaches the application after its time."""
    late: list[bytes] = []

    async with PZQ(memory=True, ack_timeout_s=2.0, reaper_interval_s=0.5) as pzq:
        runtime = Runtime(Memory())
        client = PzqClient(runtime, pzq.urls)

        async def take(delivery: Any) -> None:
            if delivery.is_expired(runtime.clock.wall()):
                late.append(delivery.body[0])
            if delivery.body[0] == b"slow":
                await asyncio.sleep(3)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(take, filter_expired=True)
        pzq.publish(b"slow")
        pzq.publish(b"next")
        await asyncio.sleep(20)
        client.abort()
    assert not late, late
