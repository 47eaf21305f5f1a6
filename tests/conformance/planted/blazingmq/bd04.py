"""Binary values of properties go through a text on their way out: bytes that are no UTF-8 arrive as others.
Like apache/openwhisk-package-kafka 269 (binary values are taken for UTF-8 before they are encoded).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType, read_content

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    plain = Contents.area

    def as_text(one: Property) -> Property:
        if not isinstance(one.value, bytes):
            return one
        return one._replace(value=one.value.decode(errors="replace").encode())

    def area(self: Any, properties: Any, style: Any) -> bytes:
        return plain(self, {name: as_text(one) for name, one in properties.items()}, style)

    Contents.area = area  # type: ignore[method-assign]


async def witness() -> None:
    """A binary property is stored as it was given."""
    given = {"digest": Property(PropertyType.BINARY, bytes(range(250, 256)))}
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        await client.queues.open("orders", URI, frozenset({"write"}), {}, 5.0)
        await client.posts.post("orders", b"tea", given, zlib_wanted=False, wait=True, timeout=5.0)
        [message] = broker.messages(URI)
        client.abort()
    found = read_content(
        message.data,
        has_properties=message.has_properties,
        schema_id=message.schema_id,
        compression=message.compression,
    )
    assert dict(found.properties) == given, found
