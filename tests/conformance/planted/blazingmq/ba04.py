"""Properties whose value is 0, false or empty are not sent: a consumer that looks at them finds nothing, or
takes a default. Like Azure/go-amqp 330 and php-amqp/php-amqp 261 (a header that is false is omitted, or
something else).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    pack = Contents.pack

    def pack_set(self: Any, payload: bytes, properties: Mapping[str, Property], **how: Any) -> Any:
        given = {name: one for name, one in properties.items() if one.value}
        return pack(self, payload, given, **how)

    Contents.pack = pack_set  # type: ignore[method-assign]


async def witness() -> None:
    """All properties arrive."""
    got: list[list[str]] = []

    async def take(delivery: Any) -> None:
        got.append(sorted(delivery.properties))

    properties = {
        "attempt": Property(PropertyType.INT32, 0),
        "last": Property(PropertyType.BOOL, False),
        "name": Property(PropertyType.STRING, "x"),
    }
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read", "write"}), {}, 5)
        queue.callback = take
        await client.posts.post("q", b"one", properties, zlib_wanted=False, wait=True, timeout=5)
        await asyncio.sleep(1)
        client.abort()
    assert got == [["attempt", "last", "name"]], got
