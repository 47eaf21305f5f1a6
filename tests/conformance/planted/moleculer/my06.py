"""A node that stops does not wait for the requests that it has begun: their callers get no answer. Like
moleculerjs/moleculer 339 (stopping in good order) and shamblett/mqtt_client 582.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""

    async def finished(self: Any, timeout_s: float) -> None:
        pass

    Server.finished = finished  # type: ignore[method-assign]


async def witness() -> None:
    """A request that runs is answered while the node stops."""
    async with Moleculer(memory=True) as server:
        node = server.node("fake-1")
        client = made(server)
        await client.connect(5)

        async def slow(context: Any) -> Any:
            await asyncio.sleep(1)
            return "done"

        client.serve(Service("s", {"act": slow}))
        await asyncio.sleep(2)
        calling = node.start_call("s.act", timeout=5.0)
        await asyncio.sleep(0.3)
        await client.close(10)
        await asyncio.sleep(1)
        is_answered = calling.done() and calling.exception() is None
    assert is_answered
