"""The client keeps one callback, that of the subscription made last: it gets the messages of all queues.
Like nats-io/nats.c 407 (whatever callback was given to the last subscribe call gets every message).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

ORDERS = "bmq://bmq.test.mem.priority/orders"
BILLS = "bmq://bmq.test.mem.priority/bills"


def plant() -> None:
    """Install the defect."""
    plain_subscribe, plain_deliver = Deliveries.subscribe, Deliveries.deliver_message

    def subscribe(self: Any, queue: Any) -> None:
        self.callback = queue.callback
        plain_subscribe(self, queue)

    async def deliver_message(self: Any, delivery: Any) -> None:
        if delivery.queue.callback is None:
            await plain_deliver(self, delivery)
            return
        await self.client.runtime.callbacks.contain_async("message", lambda: self.callback(delivery))

    Deliveries.subscribe = subscribe  # type: ignore[method-assign]
    Deliveries.deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """Each of two callbacks gets what was published to its own queue."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        came: dict[str, list[bytes]] = {"orders": [], "bills": []}
        for name, uri in (("orders", ORDERS), ("bills", BILLS)):

            async def take(delivery: Delivery, name: str = name) -> None:
                came[name].append(delivery.payload)

            queue = await client.queues.open(name, uri, frozenset({"read"}), {}, 5.0)
            queue.callback = take
            client.deliveries.subscribe(queue)
        broker.publish(ORDERS, b"tea")
        broker.publish(BILLS, b"three")
        await asyncio.sleep(5)
        client.abort()
    assert came == {"orders": [b"tea"], "bills": [b"three"]}, came
