"""The graceful end of a subscription waits for acknowledgements but not for the callbacks: without
acknowledgements, what has arrived and waits for a slow callback is dropped, and the server has it no more.
Like eclipse-paho/paho.mqtt.python 749 (a clean end without losing messages).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def drain(self: Any) -> None:
        self.core.stop()
        await self.socket.barrier()
        while self.core.outstanding and self.socket.is_open:
            await asyncio.sleep(0.01)

    Subscription.drain = drain  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """All that has arrived is handed over before the end."""
    seen = []
    async with Narconi(memory=True) as server:
        client = made(server)
        server.create_queue("test", "q")

        async def take(delivery: Delivery) -> None:
            await asyncio.sleep(0.3)
            seen.append(delivery.body)

        subscription = await client.subscribe("q", take)
        for number in range(4):
            server.publish("test", "q", str(number))
        await asyncio.sleep(0.5)
        await subscription.drain()
        await subscription.close()
        await client.close(1)
    assert len(seen) == 4, seen
