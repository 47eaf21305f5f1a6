"""At each reconnect the listeners are registered once more beside those that are there: after one, each
event is handled twice. Like sebpiq/rhizome 49 and MeowWolf/node-red-contrib-amqp 75 (the handlers of
messages are bound again with every reconnect).
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
    listen, rejoin = Events.listen, MoleculerClient.rejoin

    def noted(self: Any, *what: Any) -> None:
        if not hasattr(self, "wanted"):
            self.wanted = []
        self.wanted.append(what)
        listen(self, *what)

    async def again(self: Any) -> None:
        await rejoin(self)
        for what in getattr(self.events, "wanted", ()):
            listen(self.events, *what)

    Events.listen = noted  # type: ignore[method-assign]
    MoleculerClient.rejoin = again  # type: ignore[method-assign]


async def witness() -> None:
    """After a reconnect an event is handled once."""
    got: list[Any] = []

    async def take(packet: Any) -> None:
        got.append(packet["data"])

    async with Moleculer(memory=True) as moleculer:
        peer = moleculer.node("peer")
        endpoint = f"{moleculer.host}:{moleculer.port}"
        client = MoleculerClient(Runtime(Memory()), Settings(transporter="nats", endpoints=(endpoint,)))
        await client.connect(5.0)
        client.serve(Service("listener", events={"user.created": ""}))
        client.events.listen("user.created", "listener", take)
        await asyncio.sleep(2)
        moleculer.kill()
        await asyncio.sleep(10)
        peer.emit("user.created", 1)
        await asyncio.sleep(2)
        client.abort()
    assert got == [1], got
