"""A broadcast reaches all listeners of a node, whatever groups it names. Like moleculerjs/moleculer 217
(the groups of an event do not count in a broadcast to one group).
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


def plant() -> None:
    """Install the defect."""

    def event(self: Any, packet: Any) -> None:
        name, groups = packet.get("event"), packet.get("groups")
        if not isinstance(name, str):
            return
        if packet.get("broadcast") is True:
            groups = None
        for listener in self.listeners:
            if self.concerns(listener, name, groups):
                listener.feed.put(packet)

    Events.event = event  # type: ignore[method-assign]


async def witness() -> None:
    """A broadcast to one group reaches the listener of that group alone."""
    async with Moleculer(memory=True, faults={"faults": []}) as moleculer:
        other = moleculer.node("fake-1")
        client = MoleculerClient(Runtime(Memory()), Settings("nats", (f"{moleculer.host}:{moleculer.port}",)))
        await client.connect(5.0)
        came: list[str] = []
        for group in ("mail", "stock"):

            async def handle(packet: Any, group: str = group) -> None:
                came.append(group)

            client.serve(Service(group, events={"order.made": group}))
            client.events.listen("order.made", group, handle)
        await asyncio.sleep(2)
        other.broadcast("order.made", 7, ["mail"])
        await asyncio.sleep(2)
        client.abort()
    assert came == ["mail"], came
