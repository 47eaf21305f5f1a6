"""The task that watches a connection goes on for ever after the connection is lost: each reconnect leaves
one more. Like kuzzle 700 (ping timers that nobody clears) and reconnecting-websocket 170.
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
        while True:
            await asyncio.sleep(interval_s)
            if self.heard:
                missed = 0
            elif missed >= most:
                self.link.end(ClientError("connection", f"nothing came for {missed + 1} intervals"))
            else:
                missed += 1
                self.link.send(HeartbeatRequest())
            self.heard = False

    def end(self: Watchdog) -> None:
        """The task is left alone."""

    Watchdog.watch = watch  # type: ignore[method-assign]
    Watchdog.end = end  # type: ignore[method-assign]


async def witness() -> None:
    """After three reconnects there are as many tasks as before."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        await asyncio.sleep(60)
        before = client.runtime.task_count
        for _ in range(3):
            broker.kill()
            await asyncio.sleep(60)
        after = client.runtime.task_count
        is_open = client.is_open
        client.abort()
    assert is_open
    assert after == before, (before, after)
