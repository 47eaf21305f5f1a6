"""Messages that come while the application has unsubscribed for a moment are dropped; the broker takes them
for delivered, and they come again only after a reconnect. Like librdkafka 2557 (messages lost while a
consumer pauses).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""
    deliver_message, subscribe = Deliveries.deliver_message, Deliveries.subscribe
    subscribed: set[Queue] = set()

    async def new_deliver_message(self: Deliveries, delivery: Delivery) -> None:
        if delivery.queue.callback is None and delivery.queue in subscribed:
            self.client.runtime.callbacks.note("a message without a subscriber was dropped")
        else:
            await deliver_message(self, delivery)

    def new_subscribe(self: Deliveries, queue: Queue) -> None:
        subscribed.add(queue)
        subscribe(self, queue)

    Deliveries.deliver_message = new_deliver_message  # type: ignore[method-assign]
    Deliveries.subscribe = new_subscribe  # type: ignore[method-assign]


async def witness() -> None:
    """What came in between is delivered to the next subscription."""
    got = []

    async def on_message(delivery: Delivery) -> None:
        got.append(delivery.payload)

    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        for callback, body in ((on_message, b"one"), (None, b"two"), (on_message, b"three")):
            queue.callback = callback
            if callback is not None:
                client.deliveries.subscribe(queue)
            broker.publish(URI, body)
            await asyncio.sleep(1)
        client.abort()
    assert got == [b"one", b"two", b"three"], got
