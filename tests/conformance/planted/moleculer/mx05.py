"""Each reconnect begins another series of heartbeats, and none is ever ended: after some losses a node sends
a multiple of them. Like prdn/pigato 38 (timers of heartbeats that outlive the connection).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.journal import Tap


def plant() -> None:
    """Install the defect."""
    rejoin = MoleculerClient.rejoin

    async def again(self: MoleculerClient) -> None:
        await rejoin(self)
        if self.is_open and self.settings.transporter != "tcp":
            self.runtime.tasks.spawn(self.heartbeats())

    MoleculerClient.rejoin = again  # type: ignore[method-assign]


async def witness() -> None:
    """One heartbeat in each interval, however often the connection was lost."""
    async with Moleculer(memory=True) as fake:
        settings = Settings("nats", (f"{fake.host}:{fake.port}",), heartbeat_s=1.0)
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        for _ in range(3):
            await asyncio.sleep(5)
            fake.kill()
        await asyncio.sleep(5)
        since = fake.packets()[-1][0].seq
        await asyncio.sleep(10)
        sent = sum(bool(record.tap & Tap.RECEIVED) for record, _ in fake.packets("Heartbeat", since))
        client.abort()
    assert 9 <= sent <= 11, sent
