"""The node shows that it lives when the time is over after which others take it for dead, and not in each
interval: they see it go and come, though nothing is wrong with it. Like mokshaproject/moksha 64 (heartbeats
are sent at the very end of the time that was agreed, and the broker has hung up by then).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer

LATE = 1.1
LOOKS = 2000


def plant() -> None:
    """Install the defect."""

    async def heartbeats(self: Any) -> None:
        while True:
            await asyncio.sleep(self.settings.heartbeat_timeout_s * LATE)
            if self.is_open:
                self.post.send("HEARTBEAT", "", {"cpu": self.runtime.network.busy_percent()})

    MoleculerClient.heartbeats = heartbeats  # type: ignore[method-assign]


async def witness() -> None:
    """A node that lives is available to another one all the time."""
    async with Moleculer(memory=True, faults={"faults": []}) as moleculer:
        other = moleculer.node("fake-1", heartbeat_s=2.0, heartbeat_timeout_s=6.0)
        settings = Settings(
            "nats",
            (f"{moleculer.host}:{moleculer.port}",),
            heartbeat_s=2.0,
            heartbeat_timeout_s=6.0,
        )
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5.0)
        client.serve(Service("shop"))
        await asyncio.sleep(2)
        absent = 0
        for _ in range(LOOKS):
            await asyncio.sleep(0.1)
            absent += not other.peers["reference"].available
        client.abort()
    assert not absent, f"absent in {absent} of {LOOKS} looks"
