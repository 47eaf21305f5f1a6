"""Properties whose value is 0, false or empty are not sent: the consumer finds no such property. Like
node-rdkafka 36 and waldophotos/kafka-avro 64 (empty and none taken for the same).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents, Packed
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType


def plant() -> None:
    """Install the defect."""
    original = Contents.pack

    def pack(
        self: Contents,
        payload: bytes,
        properties: Mapping[str, Property],
        *,
        zlib_wanted: bool,
        new_style: bool,
    ) -> Packed:
        there = {name: each for name, each in properties.items() if each.value}
        return original(self, payload, there, zlib_wanted=zlib_wanted, new_style=new_style)

    Contents.pack = pack  # type: ignore[method-assign]


async def witness() -> None:
    """The consumer gets all properties."""
    got = []

    async def on_message(delivery) -> None:  # type: ignore[no-untyped-def]
        got.append(dict(delivery.properties))

    properties = {
        "retries": Property(PropertyType.INT32, 0),
        "urgent": Property(PropertyType.BOOL, False),
        "note": Property(PropertyType.STRING, ""),
        "from": Property(PropertyType.STRING, "shop"),
    }
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        flags = frozenset({"read", "write"})
        queue = await client.queues.open("q", "bmq://bmq.test.mem.priority/q", flags, {}, 5)
        queue.callback = on_message
        await client.posts.post("q", b"x", properties, zlib_wanted=False, wait=True, timeout=5)
        await asyncio.sleep(1)
        client.abort()
    assert [sorted(each) for each in got] == [sorted(properties)], got
