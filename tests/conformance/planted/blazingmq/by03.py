"""Silent intervals are counted over the whole life of a connection, not in a row: a connection that is idle
now and then, and whose broker answers each time, is given up after a while. Like eclipse-paho/paho.mqtt.c
570 (a premature end for lack of signs of life).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.blazingmq.watchdog import Watchdog
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import HeartbeatRequest

A = "bmq://bmq.test.mem.priority/a"
B = "bmq://bmq.test.mem.priority/b"
C = "bmq://bmq.test.mem.priority/c"
BOTH = frozenset({"read", "write"})


def made(server: Any, reports: list[str] | None = None) -> BlazingClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return BlazingClient(runtime, server.url.partition("//")[2])


def take(client: BlazingClient, queue: Queue, seen: list[Any], pause_s: float = 0.0) -> None:
    """Subscribe."""

    async def callback(delivery: Delivery) -> None:
        seen.append(delivery)
        await asyncio.sleep(pause_s)

    queue.callback = callback
    client.deliveries.subscribe(queue)


def plant() -> None:
    """Install the defect."""

    async def watch(self: Any, interval_s: float, most: int) -> None:
        missed = 0
        while self.link.state == "open":
            await asyncio.sleep(interval_s)
            if not self.heard:
                if missed >= most:
                    self.link.end(ClientError("connection", f"nothing came for {missed + 1} intervals"))
                    return
                missed += 1
                self.link.send(HeartbeatRequest())
            self.heard = False

    Watchdog.watch = watch  # type: ignore[method-assign]


async def witness() -> None:
    """An idle connection stays, as long as the broker answers."""
    reports: list[str] = []
    async with BlazingMQ(memory=True, heartbeats=False, heartbeat_s=1.0, max_missed=3) as broker:
        client = made(broker, reports)
        await client.connect(5)
        await asyncio.sleep(60)
        await client.close(5)
    assert "connection_lost" not in reports, reports
