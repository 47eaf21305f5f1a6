"""A WebSocket whose pong is missing is closed as if the application had wanted it so: nothing is reported,
and no reconnect begins. Like EVerest/libocpp 1175 (no reconnect after a pong timeout).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.socket import Socket
from fakebrokers import Narconi
from fakebrokers.faults.build import drop


def plant() -> None:
    """Install the defect."""
    plain = Socket.unanswered

    def unanswered(self: Any) -> None:
        self._closing = True
        plain(self)

    Socket.unanswered = unanswered  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The subscription comes back after a pong that never came."""
    seen = []
    async with Narconi(memory=True) as server:
        client = made(server, auto_reconnect=True, keepalive_s=1.0)
        server.create_queue("test", "q")

        async def take(delivery: Delivery) -> None:
            seen.append(delivery.body)

        await client.subscribe("q", take)
        server.faults.add(drop(role="heartbeat", direction="out", nth=1, scope="run"))
        await asyncio.sleep(10)
        server.publish("test", "q", b"x")
        await asyncio.sleep(3)
        await client.close(1)
    assert seen == [b"x"], seen
