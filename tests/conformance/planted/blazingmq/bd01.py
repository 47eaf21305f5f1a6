"""A message that cannot be read takes the rest of its PUSH event with it: those after it reach no
application. Like smarthomeNG/smarthome 615 (one payload that cannot be decoded, and nothing after it is
received).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Packed
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import Put
from fakebrokers.errors import WireError

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""

    def pushed(self: Any, frame: Any) -> None:
        for message in frame.messages:
            queue = self.client.queues.numbered(message.queue_id)
            if queue is None:
                self.trouble(f"a message for queue {message.queue_id}, which is not open")
                continue
            try:
                content = self.contents.unpack(message)
            except WireError as error:
                self.trouble(f"an event that cannot be read: {error}")
                return
            self.feed.put(Delivery(queue, message.guid, content.payload, content.properties))
        if frame.rest:
            self.trouble(f"{len(frame.rest)} bytes of a PUSH event that cannot be read")

    Deliveries.pushed = pushed  # type: ignore[method-assign]


async def witness() -> None:
    """What comes in the same event after a message that cannot be read is delivered."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        sender = await client.queues.open("orders", URI, frozenset({"write"}), {}, 5.0)
        broken = Packed(b"no zlib stream", has_properties=False, schema_id=0, compression=Compression.ZLIB)
        client.link_now().send(Put((client.posts.message(sender, broken, 0),)))
        await client.queues.close("orders", 5.0)
        for body in (b"two", b"three"):
            broker.publish(URI, body)
        queue = await client.queues.open("orders", URI, frozenset({"read"}), {}, 5.0)
        came: list[bytes] = []

        async def deliver(delivery: Delivery) -> None:
            came.append(delivery.payload)

        queue.callback = deliver
        client.deliveries.subscribe(queue)
        await asyncio.sleep(5)
        client.abort()
    assert came == [b"two", b"three"], came
