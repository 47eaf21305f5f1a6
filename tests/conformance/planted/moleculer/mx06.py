"""Calls and events of all kinds take their turns from one counter: who calls two actions alternately asks the
same node for each of them every time, and the others get nothing of it. Like
swagger-api/swagger-async-httpclient 1 and micro/go-micro 88 (a round robin counter that is shared by all
services).
"""

from __future__ import annotations

import asyncio
from collections import Counter

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def next_of(self: Registry, what: str, ids: list[str]) -> str | None:
        if not ids:
            return None
        turn = self._turns.get("", 0)
        self._turns[""] = turn + 1
        return ids[turn % len(ids)]

    Registry.next_of = next_of  # type: ignore[method-assign]


async def witness() -> None:
    """Each action is asked for at all nodes that have it."""
    async with Moleculer(memory=True) as fake:
        services = {"math": {"add": lambda ctx: 1, "sub": lambda ctx: 2}}
        nodes = [fake.node(f"fake-{number}", services) for number in (1, 2)]
        client = MoleculerClient(Runtime(Memory()), Settings("nats", (f"{fake.host}:{fake.port}",)))
        await client.connect(5)
        await asyncio.sleep(2)
        for _ in range(4):
            await client.caller.call("math.add", {}, timeout=5)
            await client.caller.call("math.sub", {}, timeout=5)
        asked = [Counter(request.action for request in node.requests)["math.add"] for node in nodes]
        client.abort()
    assert asked == [2, 2], asked
