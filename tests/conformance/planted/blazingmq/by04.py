"""The end of the connection is not told to those who wait for an ACK: each waits for its whole time-out.
Like mqttjs/MQTT.js 1974 (publish callbacks that never run if the connection closes).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults.build import drop

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
    plain = BlazingClient.link_ended

    def link_ended(self: Any, link: Any, error: ClientError) -> None:
        self.posts.end = lambda error: None
        try:
            plain(self, link, error)
        finally:
            del self.posts.end

    BlazingClient.link_ended = link_ended  # type: ignore[method-assign]


async def witness() -> None:
    """A post whose ACK cannot come any more ends at once."""
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        await client.queues.open("a", A, frozenset({"write"}), {}, 5)
        broker.faults.add(drop(role="confirm", direction="out"))
        posting = asyncio.ensure_future(
            client.posts.post("a", b"x", {}, zlib_wanted=False, wait=True, timeout=60)
        )
        await asyncio.sleep(0.5)
        broker.kill()
        await asyncio.sleep(3)
        is_done = posting.done()
        await client.close(5)
        await asyncio.gather(posting, return_exceptions=True)
    assert is_done
