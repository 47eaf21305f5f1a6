"""An application that subscribes to a queue some time after it was opened gets the messages that came first
behind those that came later, if messages of that queue still wait behind the callback of another one. Like
kompics/kompics 21 (what came before the channel was there is delivered after what came later).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

BUSY = "bmq://bmq.test.mem.priority/busy"
LATE = "bmq://bmq.test.mem.priority/late"


def plant() -> None:
    """Install the defect."""

    def subscribe(self: Any, queue: Any) -> None:
        early, queue.early = queue.early, []
        for delivery in early:
            self.feed.put(delivery)

    Deliveries.subscribe = subscribe  # type: ignore[method-assign]


async def witness() -> None:
    """They come in the order in which they were posted."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        got: list[bytes] = []

        async def slow(_: Delivery) -> None:
            await asyncio.sleep(5)

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery.payload)

        await client.connect(5)
        busy = await client.queues.open("busy", BUSY, frozenset({"read"}), {}, 5)
        late = await client.queues.open("late", LATE, frozenset({"read"}), {}, 5)
        busy.callback = slow
        client.deliveries.subscribe(busy)
        server.publish(LATE, "1")
        await asyncio.sleep(1)
        server.publish(BUSY, "x")
        await asyncio.sleep(1)
        server.publish(LATE, "2")
        server.publish(LATE, "3")
        await asyncio.sleep(1)
        late.callback = deliver
        client.deliveries.subscribe(late)
        await asyncio.sleep(10)
        client.abort()
    assert got == [b"1", b"2", b"3"], got
