"""After a reconnect the queues are opened again one after the other, and the first that the broker refuses
ends that: those behind it stay shut for good, their consumers get nothing and their posts time out. Like
rabbitmq/rabbitmq-dotnet-client 1047 and 1993 (topology recovery that misses consumers after one failure).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Category
from fakebrokers.faults import reply

FIRST = "bmq://bmq.test.mem.priority/first"
SECOND = "bmq://bmq.test.mem.priority/second"


def plant() -> None:
    """Install the defect."""

    async def restore(self: Any) -> None:
        link = self.client.link_now()
        for name, queue in tuple(self.by_name.items()):
            try:
                await self.open_again(queue)
            except ClientError as error:
                if error.kind == "connection":
                    raise
                self.by_name.pop(name, None)
                self.client.runtime.callbacks.report("target_closed", error.text, error.code, queue.uri)
                return
            if self.client.link is not link:
                raise ClientError("connection", "the connection is gone")
            queue.ready.set()

    Queues.restore = restore  # type: ignore[method-assign]


async def witness() -> None:
    """The second queue comes back."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        got: list[bytes] = []

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery.payload)

        await client.connect(5)
        for name, uri in (("first", FIRST), ("second", SECOND)):
            queue = await client.queues.open(name, uri, frozenset({"read"}), {}, 5)
            queue.callback = deliver
        server.faults.add(reply(int(Category.E_REFUSED), kind="openQueue", nth=1))
        server.kill()
        await asyncio.sleep(10)
        server.publish(SECOND, "x")
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"x"], got
