"""A close waits until the callbacks have worked off what has come, also where a callback itself closes: it
waits for itself until its time is up. Like awslabs/aws-crt-cpp 475 and ermau/Tempest 3 (close in a callback
is a deadlock).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    stop = BlazingClient.stop

    async def drained(self: BlazingClient, timeout: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.deliveries.feed.drained(), timeout)
        await stop(self, timeout)

    BlazingClient.stop = drained  # type: ignore[method-assign]


async def witness() -> None:
    """A callback can close the client."""
    took: list[float] = []
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        loop = asyncio.get_running_loop()

        async def deliver(delivery: Delivery) -> None:
            begun = loop.time()
            await client.close(5)
            took.append(loop.time() - begun)

        queue.callback = deliver
        client.deliveries.subscribe(queue)
        broker.publish(URI, "stop")
        await asyncio.sleep(30)
        client.abort()
    assert took and took[0] < 1, took
