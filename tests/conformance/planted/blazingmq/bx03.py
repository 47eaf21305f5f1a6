"""Silent intervals are counted over the whole life of a connection and not in a row: one on which little
happens is given up after a while although the broker has answered every heartbeat. Like pika/pika 243.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.watchdog import Watchdog
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import HeartbeatRequest


def plant() -> None:
    """Install the defect."""

    async def watch(self: Watchdog, interval_s: float, most: int) -> None:
        missed = 0
        while self.link.state == "open":
            await asyncio.sleep(interval_s)
            if not self.heard:
                if missed >= most:
                    self.link.end(ClientError("connection", f"nothing came for {missed + 1} intervals"))
                else:
                    missed += 1
                    self.link.send(HeartbeatRequest())
            self.heard = False

    Watchdog.watch = watch  # type: ignore[method-assign]


async def witness() -> None:
    """An idle connection with a broker that lives stays."""
    lost: list[str] = []
    async with BlazingMQ(memory=True) as broker:
        runtime = Runtime(Memory(), on_session=lambda what, *_: lost.append(what))
        client = BlazingClient(runtime, f"{broker.host}:{broker.port}")
        await client.connect(5)
        await asyncio.sleep(200)
        client.abort()
    assert lost == ["connected"], lost
