"""With the balancer disabled a broadcast goes out like a balanced event: of several nodes of a service only
one gets it. Like moleculer 791.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.events import Events
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.services import Service


def plant() -> None:
    """Install the defect."""
    original = Events.broadcast

    def broadcast(self: Events, event: str, data: Any, groups: list[str] | None = None) -> None:
        if not self._settings.disable_balancer:
            original(self, event, data, groups)
            return
        there = self._registry.listeners(event)
        wanted = [group for group in there if groups is None or group in groups]
        for group in wanted:
            packet = self.packet(event, data, broadcast=True, groups=[group])
            self._post.send("EVENTB", f"{group}.{event}", packet)

    Events.broadcast = broadcast  # type: ignore[method-assign]


async def witness() -> None:
    """Both nodes get the broadcast."""
    async with Moleculer(memory=True) as bus:
        services = [Service("shop", events={"order.created": lambda context: None})]
        nodes = [bus.node(name, services, disable_balancer=True) for name in ("one", "two")]
        place = (f"{bus.host}:{bus.port}",)
        settings = Settings(transporter="nats", endpoints=place, disable_balancer=True)
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        client.events.broadcast("order.created", {"id": 1})
        await asyncio.sleep(1)
        got = [len(node.events) for node in nodes]
        client.abort()
    assert got == [1, 1], got
