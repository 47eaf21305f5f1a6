"""A close waits until the message callback that runs has come to its end, without any limit: a callback
that closes the client itself waits for itself for ever, and one that hangs keeps the application from
ending. Like SignalR/SignalR 2535, ermau/Tempest 3 and awslabs/aws-crt-cpp 475 (close within a callback).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""
    stop = BlazingClient.stop

    async def patient(self: Any, timeout: float) -> None:
        try:
            await stop(self, timeout)
        finally:
            await self.deliveries.feed.drained()

    BlazingClient.stop = patient  # type: ignore[method-assign]


async def witness() -> None:
    """A callback may close its client."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        closed = asyncio.Event()

        async def deliver(_: Delivery) -> None:
            await client.close(5)
            closed.set()

        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = deliver
        server.publish(URI, "x")
        await asyncio.wait_for(closed.wait(), 30)
        client.abort()
