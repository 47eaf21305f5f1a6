"""An open that times out in the client, and that the broker answers later, leaves the queue open at the
broker: nobody knows it in the client, but the broker counts a reader there. Like apache/pulsar 9613 and
apache/pulsar-client-go 187 (a subscribe that timed out leaves its consumer at the broker).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import OpenQueue
from fakebrokers.faults import delay

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    async def ask_open(self: Any, queue: Any, timeout: float) -> None:
        parameters = self.parameters(queue)
        await self.client.usable().requests.ask(lambda number: OpenQueue(number, parameters), timeout)

    Queues.ask_open = ask_open  # type: ignore[method-assign]


async def witness() -> None:
    """Nothing of it is left at the broker."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        await client.connect(5)
        server.faults.add(delay(3, kind="openQueueResponse", direction="out", first=1))
        with suppress(ClientError):
            await client.queues.open("q", URI, frozenset({"read"}), {}, 1)
        await asyncio.sleep(10)
        left = len(server.queue(URI).handles)
        client.abort()
    assert not left, left
