"""Messages that came before the application had subscribed are put behind those that came later and still
wait: the order of the queue is broken where another queue's callback is slow. Like rabbitmq/rabbitmq-
stream-rust-client 161 (the handler is registered after messages have come) and Azure/azure-iot-sdk-c 2289
(old ones after new ones).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.queues import Queue
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

    def subscribe(self: Any, queue: Queue) -> None:
        early, queue.early = queue.early, []
        for delivery in early:
            self.feed.put(delivery)

    Deliveries.subscribe = subscribe  # type: ignore[method-assign]


async def witness() -> None:
    """The queue's order holds."""
    seen: list[Delivery] = []
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        first = await client.queues.open("a", A, BOTH, {}, 5)
        second = await client.queues.open("b", B, BOTH, {}, 5)
        take(client, second, [], 1.0)
        broker.publish(A, "1")
        await asyncio.sleep(0.5)
        broker.publish(B, "slow")
        await asyncio.sleep(0.5)
        broker.publish(A, "2")
        await asyncio.sleep(0.2)
        take(client, first, seen)
        await asyncio.sleep(3)
        await client.close(5)
    assert [one.payload for one in seen] == [b"1", b"2"], seen
