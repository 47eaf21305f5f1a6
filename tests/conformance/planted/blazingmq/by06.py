"""The number of a new queue is how many are open: once one was closed that is not the last, the next one
gets the number of a queue that is open: the broker refuses it, or messages reach the wrong callback. Like
celery/py-amqp 383 and streadway/amqp 128 (channel ids that are in use).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import Memory, Runtime
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

    def next_id(self: Any) -> int:
        return len(self.by_name) + len(self.opening)

    Queues.next_id = next_id  # type: ignore[method-assign]


async def witness() -> None:
    """The messages of each queue reach its callback."""
    of_b: list[Delivery] = []
    of_c: list[Delivery] = []
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        await client.queues.open("a", A, BOTH, {}, 5)
        take(client, await client.queues.open("b", B, BOTH, {}, 5), of_b)
        await client.queues.close("a", 5)
        take(client, await client.queues.open("c", C, BOTH, {}, 5), of_c)
        broker.publish(C, "for c")
        await asyncio.sleep(1)
        client.abort()
    assert [one.payload for one in of_c] == [b"for c"], (of_b, of_c)
