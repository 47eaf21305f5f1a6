"""Messages that come before the application has set its callback are dropped; the broker counts them as
delivered. Like mqttjs/MQTT.js 1124 and k00mi/mqtt-hs 5 (what is delivered before a handler is there is
lost).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""
    hand_over = Deliveries.deliver_message

    async def deliver_message(self: Any, delivery: Any) -> None:
        if delivery.queue.callback is not None:
            await hand_over(self, delivery)

    Deliveries.deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """What came before the callback reaches it, and then the rest."""
    got: list[bytes] = []
    async with BlazingMQ(memory=True) as broker:
        broker.publish(URI, b"before")
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5.0)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5.0)
        await asyncio.sleep(1)

        async def take(delivery: Any) -> None:
            got.append(delivery.payload)
            client.deliveries.confirm(delivery)

        queue.callback = take
        client.deliveries.subscribe(queue)
        broker.publish(URI, b"after")
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"before", b"after"], got
