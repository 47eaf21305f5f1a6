"""There is one counter for the turns of all actions and groups: an application that calls two actions one
after the other asks always the same node for each. Like vllm-project/production-stack 915 (round robin is
global) and swagger-api/swagger-async-httpclient 1.
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

    def next_of(self: Any, what: str, ids: list[str]) -> str | None:
        if not ids:
            return None
        self._turn = getattr(self, "_turn", -1) + 1
        return ids[self._turn % len(ids)]

    Registry.next_of = next_of  # type: ignore[method-assign]


async def witness() -> None:
    """Both nodes are asked for both actions."""
    async with Moleculer(memory=True) as server:
        services = {"shop": {"buy": lambda context: 1, "sell": lambda context: 2}}
        nodes = [server.node("fake-1", services), server.node("fake-2", services)]
        client = made(server)
        await client.connect(5)
        await asyncio.sleep(1)
        for _ in range(4):
            await client.caller.call("shop.buy", timeout=5)
            await client.caller.call("shop.sell", timeout=5)
        asked = [sorted({one.action for one in node.requests}) for node in nodes]
        await client.close(1)
    assert asked == [["shop.buy", "shop.sell"]] * 2, asked
