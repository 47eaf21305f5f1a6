"""Messages that came before the application had subscribed reach it last first. Like mqttjs/MQTT.js 1568
(what was kept while nobody listened comes out in the opposite order).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.kit import Feed, Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""

    def put_first(self: Any, items: Sequence[Any]) -> None:
        self._drained.clear()
        self._items.extendleft(items)
        self._filled.set()

    Feed.put_first = put_first  # type: ignore[method-assign]


async def witness() -> None:
    """What was kept comes in the order of publishing."""
    got: list[bytes] = []

    async def take(delivery: Any) -> None:
        got.append(delivery.payload)

    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        for number in range(4):
            broker.publish(URI, b"%d" % number)
        await asyncio.sleep(1)
        queue.callback = take
        client.deliveries.subscribe(queue)
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"0", b"1", b"2", b"3"], got
