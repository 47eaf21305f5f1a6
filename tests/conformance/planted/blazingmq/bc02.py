"""Properties of 64 bits go through a floating-point number, which has 53: large ones arrive with other
digits at the end. Like amqp/rhea 147 and postwait/node-amqp 62 (longs above 2^53 are wrong after the way
through a JavaScript number).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType

URI = "bmq://bmq.test.mem.priority/q"


def rounded(found: Property) -> Property:
    """The property as a floating-point number has it."""
    if found.type is not PropertyType.INT64:
        return found
    return found._replace(value=max(-(2**63), min(2**63 - 1, int(float(found.value)))))


def plant() -> None:
    """Install the defect."""
    area = Contents.area

    def coarse(self: Any, properties: Any, style: Any) -> bytes:
        return area(self, {name: rounded(one) for name, one in properties.items()}, style)

    Contents.area = coarse  # type: ignore[method-assign]


async def witness() -> None:
    """A large number arrives with all of its digits."""
    number = 2**53 + 1
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5.0)
        await client.queues.open("q", URI, frozenset({"write"}), {}, 5.0)
        properties = {"n": Property(PropertyType.INT64, number)}
        await client.posts.post("q", b"x", properties, zlib_wanted=False, wait=True, timeout=5.0)
        found = broker.messages(URI)[0].content.properties["n"].value
        client.abort()
    assert found == number, found
