"""When one queue cannot be opened again after a reconnect, those after it are not even tried: they stay
unusable until the next loss. Like rabbitmq/rabbitmq-dotnet-client 1047 and 1993 (recovery that misses
consumers after an error).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import refuse_open

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

    async def restore(self: Any) -> None:
        link = self.client.link_now()
        for name, queue in tuple(self.by_name.items()):
            try:
                await self.open_again(queue)
            except ClientError as error:
                if error.kind != "connection":
                    self.by_name.pop(name, None)
                    self.client.runtime.callbacks.report("target_closed", error.text, error.code, queue.uri)
                raise
            if self.client.link is not link:
                raise ClientError("connection", "the connection is gone")
            queue.ready.set()

    Queues.restore = restore  # type: ignore[method-assign]


async def witness() -> None:
    """The second queue works although the first one is refused."""
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        await client.queues.open("a", A, BOTH, {}, 5)
        await client.queues.open("b", B, BOTH, {}, 5)
        broker.faults.add(refuse_open(nth=1, scope="run"))
        broker.kill()
        await asyncio.sleep(3)
        await client.posts.post("b", b"x", {}, zlib_wanted=False, wait=True, timeout=5)
        await client.close(5)
