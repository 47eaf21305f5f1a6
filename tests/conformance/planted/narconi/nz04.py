"""A subscription that is closed while its lost connection is being made anew comes back after all: nobody
has a handle on it, and what the server sends to it is gone. Like apache/pulsar 9591 and
apache/pulsar-client-cpp 518 (zombie consumers after a close during a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def stop(self: Any) -> None:
        self._is_closing = True

    Subscription._stop = stop  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """What comes after the close stays in the queue."""

    async def taken(delivery: Any) -> None:
        """It is not needed."""

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        client = made(server, auto_reconnect=True)
        subscription = await client.subscribe("q", taken)
        server.lose_backend(down=True)
        await asyncio.sleep(1)
        await subscription.close()
        server.restore_backend()
        await asyncio.sleep(10)
        server.publish("test", "q", b"x")
        await asyncio.sleep(1)
        left = len(server.messages("test", "q"))
        client.abort()
    assert left == 1, left
