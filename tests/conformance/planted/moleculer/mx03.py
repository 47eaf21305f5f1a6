"""All listeners of a node share one queue: a handler that takes its time keeps events from all others. Like
FactbirdHQ/mqttrust 68 and bluenviron/goroslib 178.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.clients.reference.kit import Feed, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.events import Events, Listener
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer

Json = dict[str, Any]


def plant() -> None:
    """Install the defect."""

    class Share:
        def __init__(self, feed: Feed[Any], handle: Callable[[Json], Awaitable[None]]) -> None:
            self.feed, self.handle = feed, handle

        def put(self, packet: Json) -> None:
            self.feed.put((self.handle, packet))

    def listen(self: Events, pattern: str, group: str, handle: Callable[[Json], Awaitable[None]]) -> None:
        async def contained(item: Any) -> None:
            own, packet = item
            await self._runtime.callbacks.contain_async("message", lambda: own(packet))

        if "shared" not in self.__dict__:
            self.__dict__["shared"] = Feed[Any](self._runtime.feeds, contained)
        share: Any = Share(self.__dict__["shared"], handle)
        self.listeners.append(Listener(pattern, group, share))

    Events.listen = listen  # type: ignore[method-assign]


async def witness() -> None:
    """A listener that is ready gets its event at once."""
    seen: list[str] = []
    async with Moleculer(memory=True) as fake:
        node = fake.node("fake-1", {})
        client = MoleculerClient(Runtime(Memory()), Settings("nats", (f"{fake.host}:{fake.port}",)))
        await client.connect(5)

        async def slow(packet: Json) -> None:
            await asyncio.sleep(30)

        async def quick(packet: Json) -> None:
            seen.append(packet["event"])

        client.events.listen("report.made", "slow", slow)
        client.events.listen("user.created", "quick", quick)
        client.serve(Service("slow", events={"report.made": ""}))
        client.serve(Service("quick", events={"user.created": ""}))
        await asyncio.sleep(2)
        node.broadcast("report.made", 1)
        await asyncio.sleep(0.5)
        node.broadcast("user.created", 2)
        await asyncio.sleep(2)
        client.abort()
    assert seen == ["user.created"], seen
