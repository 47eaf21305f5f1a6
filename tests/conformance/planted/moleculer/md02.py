"""All listeners of a node that an event concerns are called as one: the first that raises keeps the event
from those after it. Like georapbox/PubSub 4 (one subscriber throws, and the others do not get the message).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Feed, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.events import Events
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    plain = Events.listen

    def listen(self: Any, pattern: str, group: str, handle: Any) -> None:
        plain(self, pattern, group, handle)
        self.listeners[-1].handle = handle

    async def all_of(self: Any, packet: Any) -> None:
        name, groups = packet["event"], packet.get("groups")
        for listener in self.listeners:
            if self.concerns(listener, name, groups):
                await listener.handle(packet)

    def event(self: Any, packet: Any) -> None:
        if not isinstance(packet.get("event"), str):
            return
        if not hasattr(self, "line"):
            callbacks = self._runtime.callbacks

            async def contained(packet: Any) -> None:
                await callbacks.contain_async("message", lambda: all_of(self, packet))

            self.line = Feed(self._runtime.feeds, contained)
        self.line.put(packet)

    Events.listen = listen  # type: ignore[method-assign]
    Events.event = event  # type: ignore[method-assign]


async def witness() -> None:
    """An event reaches the second listener though the first raises."""
    async with Moleculer(memory=True, faults={"faults": []}) as moleculer:
        other = moleculer.node("fake-1")
        client = MoleculerClient(Runtime(Memory()), Settings("nats", (f"{moleculer.host}:{moleculer.port}",)))
        await client.connect(5.0)
        came: list[Any] = []

        async def fails(packet: Any) -> None:
            raise RuntimeError("no")

        async def works(packet: Any) -> None:
            came.append(packet["data"])

        for group, handle in (("first", fails), ("second", works)):
            client.serve(Service(group, events={"order.made": group}))
            client.events.listen("order.made", group, handle)
        await asyncio.sleep(2)
        other.broadcast("order.made", 7)
        await asyncio.sleep(2)
        client.abort()
    assert came == [7], came
