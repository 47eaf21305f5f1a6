"""Each delivery has a task of its own: callbacks that take their time run at once, and what they do comes out
of order. Like dotnet/MQTTnet 248 and hivemq/hivemq-mqtt-client-dotnet 336.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    hand_over = Consumer.hand_over

    async def at_once(self: Consumer, delivery: Delivery) -> None:
        self.runtime.tasks.spawn(hand_over(self, delivery))

    Consumer.hand_over = at_once  # type: ignore[method-assign]


async def witness() -> None:
    """The second message is not begun before the first one is done."""
    seen: list[str] = []
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def deliver(delivery: Delivery) -> None:
            name = delivery.body[0].decode()
            seen.append(f"begin {name}")
            await asyncio.sleep(2 if name == "a" else 0)
            seen.append(f"end {name}")
            await consumer.settle(delivery, True)

        consumer = client.subscribe(deliver)
        await asyncio.sleep(1)
        broker.publish(b"a", key=b"1")
        broker.publish(b"b", key=b"2")
        await asyncio.sleep(4)
        await client.close()
    assert seen == ["begin a", "end a", "begin b", "end b"], seen
