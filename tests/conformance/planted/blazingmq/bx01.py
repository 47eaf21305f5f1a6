"""New limits of a queue that is open are not remembered: after a reconnect it is configured as it was when it
was opened. Like ruby-amqp/amqp 188 (the prefetch that was set later is gone after a reconnect).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import LIMITS, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""

    async def configure(self: Queues, name: str, options: Mapping[str, int], timeout: float) -> None:
        queue = self.find(name)
        if not queue.read:
            raise ClientError("invalid", "the queue is not open for read")
        await self.ask_configure(queue, {**LIMITS, **options}, timeout)

    Queues.configure = configure  # type: ignore[method-assign]


async def witness() -> None:
    """The limit that was set last holds after a reconnect."""
    seen: list[bytes] = []
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)

        async def deliver(delivery: Delivery) -> None:
            seen.append(delivery.payload)

        queue.callback = deliver
        client.deliveries.subscribe(queue)
        await client.queues.configure("q", {"max_unconfirmed_messages": 1}, 5)
        broker.kill()
        await asyncio.sleep(5)
        for number in range(4):
            broker.publish(URI, f"{number}")
        await asyncio.sleep(2)
        client.abort()
    assert seen == [b"0"], seen
