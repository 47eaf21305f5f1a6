"""To close a client that has published takes half of the given time, always: it waits as long as there are
publishing connections, not as long as there are messages without an outcome. Like
AsyncHttpClient/async-http-client 1916 (shutdown is slow when nothing is under way).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def publish_rest(self: Any, patience_s: float) -> None:
        clock = self.runtime.clock
        until = clock.now() + patience_s
        while self.publishers.standing() and clock.now() < until:
            await asyncio.sleep(0.01)
        await asyncio.gather(*(one.socket.close() for one in self.publishers.standing()))

    NarconiClient._publish_rest = publish_rest  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """With nothing outstanding the end is quick."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.publish("q", b"x", {})
        begun = asyncio.get_running_loop().time()
        await client.close(20)
        took_s = asyncio.get_running_loop().time() - begun
    assert took_s < 3, took_s
