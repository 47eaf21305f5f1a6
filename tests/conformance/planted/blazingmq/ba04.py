"""A message is bound to the callback that was there when it arrived: after the end of a subscription, and
even after the begin of the next one, what waited behind a slow callback goes to the former one. Like
hazelcast/hazelcast-nodejs-client 175 and rabbitmq/rabbitmq-stream-java-client 142 (a listener that was
removed gets what was buffered).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.errors import WireError

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""

    def take(self: Any, message: Any) -> None:
        queue = self.client.queues.numbered(message.queue_id)
        if queue is None:
            self.trouble(f"a message for queue {message.queue_id}, which is not open")
            return
        try:
            content = self.contents.unpack(message)
        except WireError as error:
            self.trouble(f"a message that cannot be read: {error}")
            return
        delivery = Delivery(queue, message.guid, content.payload, content.properties)
        if queue.callback is not None:
            self.__dict__.setdefault("bound", {})[id(delivery)] = queue.callback
        self.feed.put(delivery)

    async def deliver_message(self: Any, delivery: Delivery) -> None:
        bound = self.__dict__.setdefault("bound", {}).pop(id(delivery), None)
        callback = bound or delivery.queue.callback
        if callback is None:
            delivery.queue.early.append(delivery)
        else:
            await self.client.runtime.callbacks.contain_async("message", lambda: callback(delivery))

    Deliveries.take = take  # type: ignore[method-assign]
    Deliveries.deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """From then on messages go to the new callback alone."""
    first: list[bytes] = []
    second: list[bytes] = []

    async def slow(delivery: Any) -> None:
        first.append(delivery.payload)
        await asyncio.sleep(1)

    async def quick(delivery: Any) -> None:
        second.append(delivery.payload)

    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = slow
        client.deliveries.subscribe(queue)
        for number in range(3):
            broker.publish(URI, b"%d" % number)
        await asyncio.sleep(0.5)
        queue.callback = None
        await asyncio.sleep(0.1)
        queue.callback = quick
        client.deliveries.subscribe(queue)
        await asyncio.sleep(5)
        client.abort()
    assert (first, second) == ([b"0"], [b"1", b"2"]), (first, second)
