"""A new configuration of a reader is sent but not kept: after a reconnect the queue is opened with the
limits that it had at first. Like ruby-amqp/amqp 188 and vert-x3/vertx-rabbitmq-client 219 (prefetch that
was set later is lost with a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ

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

    async def configure(self: Any, name: str, options: Any, timeout: float) -> None:
        queue = self.find(name)
        if not queue.read:
            raise ClientError("invalid", "the queue is not open for read")
        await self.ask_configure(queue, {**queue.options, **options}, timeout)

    Queues.configure = configure  # type: ignore[method-assign]


async def witness() -> None:
    """The limit of one message holds after a reconnect, too."""
    seen: list[Delivery] = []
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        queue = await client.queues.open("a", A, BOTH, {}, 5)
        await client.queues.configure("a", {"max_unconfirmed_messages": 1}, 5)
        take(client, queue, seen)
        broker.kill()
        await asyncio.sleep(5)
        for number in range(3):
            broker.publish(A, str(number))
        await asyncio.sleep(1)
        await client.close(5)
    assert len(seen) == 1, len(seen)
