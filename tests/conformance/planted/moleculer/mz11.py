"""The loop that sends heartbeats ends with the first one that cannot be sent: after an outage the node
works, but the others hear no sign of life of it and take it for dead again and again. Like resque/resque
1883 and opt-elixir/faktory_worker 201.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.packets import Heartbeat


def plant() -> None:
    """Install the defect."""

    async def heartbeats(self: Any) -> None:
        while True:
            await asyncio.sleep(self.settings.heartbeat_s)
            self.post.send("HEARTBEAT", "", {"cpu": self.runtime.network.busy_percent()})

    MoleculerClient.heartbeats = heartbeats  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """There are heartbeats after an outage."""
    async with Moleculer(memory=True) as server:
        node = server.node("n")
        client = made(server, heartbeat_s=1.0)
        await client.connect(10)
        await asyncio.sleep(3)
        server.kill()
        server.refuse(4)
        await asyncio.sleep(10)
        before = len(node.heard(Heartbeat))
        await asyncio.sleep(5)
        heard = len(node.heard(Heartbeat)) - before
        client.abort()
    assert heard >= 4, heard
