"""Whether an INFO is new goes by its number alone: a node that has crashed and is back at once, under its
id and with other services, counts from 1 again, and its services are not taken in. Like
moleculerjs/moleculer 339 (what a restarted node says is ignored) and 48.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""

    def counts(self: Any, peer: Any, seq: int, instance: Any) -> bool:
        return not peer.available or seq > peer.seq

    Registry.counts = counts  # type: ignore[method-assign]


async def witness() -> None:
    """The services of the new instance are known."""
    async with Moleculer(memory=True) as server:
        node = server.node("fake-1", {"old": {"act": lambda context: 1}})
        client = made(server)
        await client.connect(5)
        await asyncio.sleep(1)
        assert client.registry.reaches("fake-1", "old.act")
        node.kill()
        server.node("fake-1", {"new": {"act": lambda context: 2}})
        await asyncio.sleep(2)
        data, _ = await client.caller.call("new.act", timeout=5)
        await client.close(1)
    assert data == 2
