"""A node that is stopped right after it has begun to offer a service announces the service once more while
it stops: others call it, and it is gone. Like moleculer 339 (what is said at the stop of a node overtakes
or undoes itself).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import STOP_DELAY_S, Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def send_close(self: MoleculerClient, patience_s: float) -> None:
        self.seq += 1
        self.send_info("", [])
        await asyncio.sleep(STOP_DELAY_S)
        await self.server.stopped()
        await self.server.finished(patience_s)
        self.post.send("DISCONNECT", "", {})
        bus = self.post.bus
        if bus is not None:
            await bus.drained()
            bus.close()

    MoleculerClient.send_close = send_close  # type: ignore[method-assign]


async def act(context: Any) -> None:
    """An action."""


async def witness() -> None:
    """The last thing that is said of the services is that there are none."""
    async with Moleculer(memory=True) as bus:
        settings = Settings(transporter="nats", endpoints=(f"{bus.host}:{bus.port}",))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        client.serve(Service("late", {"act": act}, stop_s=1.0))
        await client.close(10)
        said = [packet.services for _, packet in bus.packets("Info") if packet.sender == "reference"]
    assert said[-1] == [], said[-1]
