"""Objects of a stream that are 0, false, empty or null are skipped as if nothing had come. Like
moleculerjs/moleculer 511 (actions cannot return 0 and false) and KidkArolis/tiny-atom 28.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from conformance.clients.reference.moleculer.streams import Incoming, chunk_of
from fakebrokers import Moleculer
from fakebrokers.moleculer.services import Stream


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""

    def take(self: Any, packet: Any) -> None:
        if self.opening is None:
            self.opening = packet
        elif packet.get("stream") is True:
            if chunk := chunk_of(packet.get(self._payload)):
                self._chunks.put_nowait(chunk)
        else:
            self.end(self.error_in(packet))

    Incoming.take = take  # type: ignore[method-assign]


async def witness() -> None:
    """All objects arrive."""
    async with Moleculer(memory=True) as server:
        server.node(
            "fake-1", {"s": {"numbers": lambda context: Stream([1, 0, 2, "", False], object_mode=True)}}
        )
        client = made(server)
        await client.connect(5)
        await asyncio.sleep(1)
        data, _ = await client.caller.call("s.numbers", timeout=5)
        found = [one async for one in data]
        await client.close(1)
    assert found == [1, 0, 2, "", False], found
