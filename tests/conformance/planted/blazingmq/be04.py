"""The properties of a PUSH event are read once: all its messages get those of the first. Like
spring-projects/spring-amqp 2704 (the messages of a batch lose their own headers and get those of the
first).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType

ORDERS = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    plain_pushed, plain_unpack = Deliveries.pushed, Contents.unpack

    def pushed(self: Any, frame: Any) -> None:
        self.contents.properties = None
        plain_pushed(self, frame)

    def unpack(self: Any, message: Any) -> Any:
        content = plain_unpack(self, message)
        if self.properties is None:
            self.properties = content.properties
        return content._replace(properties=self.properties)

    Deliveries.pushed = pushed  # type: ignore[method-assign]
    Contents.unpack = unpack  # type: ignore[method-assign]


async def witness() -> None:
    """Three messages that wait for a consumer come with the properties that each was published with."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        for number in range(3):
            broker.publish(ORDERS, b"tea", {"number": Property(PropertyType.INT32, number)})
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        came: list[Any] = []

        async def take(delivery: Delivery) -> None:
            came.append(delivery.properties["number"].value)
            client.deliveries.confirm(delivery)

        queue = await client.queues.open("orders", ORDERS, frozenset({"read"}), {}, 5.0)
        queue.callback = take
        client.deliveries.subscribe(queue)
        await asyncio.sleep(5)
        client.abort()
    assert came == [0, 1, 2], came
