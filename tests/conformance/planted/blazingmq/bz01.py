"""What the application has configured while a queue was open (limits, priority) is forgotten when the
connection is lost: the queue comes back with the options that it was opened with, and messages flood in
again. Like vert-x3/vertx-rabbitmq-client 219 and ruby-amqp/amqp 188 (a prefetch that was set later is gone
after a reconnect).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import LIMITS, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    async def configure(self: Any, name: str, options: Mapping[str, int], timeout: float) -> None:
        queue = self.find(name)
        if not queue.read:
            raise ClientError("invalid", "the queue is not open for read")
        await self.ask_configure(queue, {**LIMITS, **options}, timeout)

    Queues.configure = configure  # type: ignore[method-assign]


def made(server: Any) -> BlazingClient:
    """A client of it."""
    return BlazingClient(Runtime(Memory()), server.url.partition("//")[2])


async def witness() -> None:
    """One message at a time, after the loss too."""
    async with BlazingMQ(memory=True) as server:
        client = made(server)
        got: list[Delivery] = []

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery)

        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = deliver
        await client.queues.configure("q", {"max_unconfirmed_messages": 1}, 5)
        server.kill()
        await asyncio.sleep(5)
        assert client.is_open
        for body in ("a", "b", "c"):
            server.publish(URI, body)
        await asyncio.sleep(1)
        client.abort()
    assert len(got) == 1, [one.payload for one in got]
