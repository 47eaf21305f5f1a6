"""A close waits for the task that runs the message callbacks, also where it is called in one of them: then
it waits for itself. Like pika/pika 1686 (a close from a consumer's callback deadlocks).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""
    stop = BlazingClient.stop

    async def joined(self: Any, timeout: float) -> None:
        await stop(self, timeout)
        await asyncio.wait({self.deliveries.feed._task})

    BlazingClient.stop = joined  # type: ignore[method-assign]


async def witness() -> None:
    """A callback closes the client, and goes on."""
    closed = asyncio.Event()
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5.0)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5.0)

        async def take(delivery: Any) -> None:
            client.deliveries.confirm(delivery)
            await client.close(5.0)
            closed.set()

        queue.callback = take
        client.deliveries.subscribe(queue)
        broker.publish(URI, b"last")
        await asyncio.sleep(30)
        client.abort()
    assert closed.is_set(), "the close never came back"
