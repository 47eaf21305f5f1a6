"""Numbers in properties go through a floating point number: those above 2**53 arrive as other numbers. Like
bloomrpc 300 and celery/librabbitmq 79.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType, Style

LARGEST = (1 << 63) - 1


def plant() -> None:
    """Install the defect."""
    original = Contents.area

    def area(self: Contents, properties: Mapping[str, Property], style: Style) -> bytes:
        rounded = {
            name: Property(kind, min(LARGEST, int(float(value))))
            if kind is PropertyType.INT64
            else Property(kind, value)
            for name, (kind, value) in properties.items()
        }
        return original(self, rounded, style)

    Contents.area = area  # type: ignore[method-assign]


async def witness() -> None:
    """The consumer gets the number that was sent."""
    got = []

    async def on_message(delivery) -> None:  # type: ignore[no-untyped-def]
        got.append(delivery.properties["id"].value)

    number = (1 << 60) + 1
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        flags = frozenset({"read", "write"})
        queue = await client.queues.open("q", "bmq://bmq.test.mem.priority/q", flags, {}, 5)
        queue.callback = on_message
        properties = {"id": Property(PropertyType.INT64, number)}
        await client.posts.post("q", b"x", properties, zlib_wanted=False, wait=True, timeout=5)
        await asyncio.sleep(1)
        client.abort()
    assert got == [number], got
