"""Messages that come while nobody has subscribed are kept for the first subscriber only: what arrives between
an unsubscribe and the next subscribe is dropped, and the broker waits for its confirm forever. Like
Safey-AS/cordova-plugin-advanced-websocket 9 and funcmike/rabbitmq-nio 8 (messages without a listener are
lost).
"""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    subscribe, deliver_message = Deliveries.subscribe, Deliveries.deliver_message
    known: WeakSet[Queue] = WeakSet()

    def subscribed(self: Deliveries, queue: Queue) -> None:
        known.add(queue)
        subscribe(self, queue)

    async def deliver(self: Deliveries, delivery: Delivery) -> None:
        if delivery.queue.callback is not None or delivery.queue not in known:
            await deliver_message(self, delivery)

    Deliveries.subscribe = subscribed  # type: ignore[method-assign]
    Deliveries.deliver_message = deliver  # type: ignore[method-assign]


async def witness() -> None:
    """Who subscribes again gets what has come meanwhile."""
    seen: list[bytes] = []
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)

        async def deliver(delivery: Delivery) -> None:
            seen.append(delivery.payload)

        queue.callback = deliver
        client.deliveries.subscribe(queue)
        await asyncio.sleep(1)
        queue.callback = None
        broker.publish(URI, "meanwhile")
        await asyncio.sleep(1)
        queue.callback = deliver
        client.deliveries.subscribe(queue)
        await asyncio.sleep(1)
        client.abort()
    assert seen == [b"meanwhile"], seen
