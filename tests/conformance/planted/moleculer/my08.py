"""A second listener to the same pattern takes the place of the first one, which hears nothing any more and
is not told. Like plapointe6/EspMQTTClient 5 and Juerd/Net-MQTT-Simple 12 (several handlers for one topic).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.events import Events
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""
    plain = Events.listen

    def listen(self: Any, pattern: str, group: str, handle: Any) -> None:
        self.listeners = [one for one in self.listeners if one.pattern != pattern]
        plain(self, pattern, group, handle)

    Events.listen = listen  # type: ignore[method-assign]


async def witness() -> None:
    """Both listeners get the event."""
    heard: list[str] = []
    async with Moleculer(memory=True) as server:
        node = server.node("fake-1")
        client = made(server)
        await client.connect(5)
        for group in ("mail", "stock"):

            async def take(packet: Any, group: str = group) -> None:
                heard.append(group)

            client.events.listen("order.*", group, take)
            client.serve(Service(group, events={"order.*": group}))
        await asyncio.sleep(2)
        node.broadcast("order.new", {})
        await asyncio.sleep(1)
        await client.close(1)
    assert sorted(heard) == ["mail", "stock"], heard
