"""All listeners of a node share one queue: while the handler of one event is at work, no other event
reaches its handler. Like OpenHands/software-agent-sdk 3151 and FactbirdHQ/mqttrust 68 (one slow subscriber
holds up all others).
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

Handle = Callable[[Any], Awaitable[None]]


class Part:
    """What a listener puts into the queue of all."""

    def __init__(self, feed: Feed[Any], handle: Handle) -> None:
        self.feed = feed
        self.handle = handle

    def put(self, packet: Any) -> None:
        """One more."""
        self.feed.put((self.handle, packet))


def plant() -> None:
    """Install the defect."""

    def listen(self: Any, pattern: str, group: str, handle: Handle) -> None:
        async def contained(item: tuple[Handle, Any]) -> None:
            handle, packet = item
            await self._runtime.callbacks.contain_async("message", lambda: handle(packet))

        if not self.listeners:
            self.feed = Feed(self._runtime.feeds, contained)
        part: Any = Part(self.feed, handle)
        self.listeners.append(Listener(pattern, group, part))

    Events.listen = listen  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """A slow handler holds up its own events only."""
    came = []

    async def slow(packet: Any) -> None:
        await asyncio.sleep(30)

    async def quick(packet: Any) -> None:
        came.append(packet["data"])

    async with Moleculer(memory=True) as server:
        other = server.node("other")
        client = made(server)
        await client.connect(10)
        for name, event, handle in (("one", "report.*", slow), ("two", "order.*", quick)):
            client.serve(Service(name, events={event: ""}))
            client.events.listen(event, name, handle)
        await asyncio.sleep(2)
        other.broadcast("report.made", 1)
        other.broadcast("order.made", 2)
        await asyncio.sleep(2)
        client.abort()
    assert came == [2], came
