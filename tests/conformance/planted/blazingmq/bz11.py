"""When one message of an event cannot be read, those behind it in the same event are lost with it: they are
neither delivered nor reported. Like criteo/kafka-sharp 46 (one record that cannot be read, and all those
behind it are discarded).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import Push, PushMessage
from fakebrokers.errors import WireError

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    def pushed(self: Any, frame: Push) -> None:
        try:
            for message in frame.messages:
                self.take(message)
        except WireError as error:
            self.trouble(f"a message that cannot be read: {error}")
        if frame.rest:
            self.trouble(f"{len(frame.rest)} bytes of a PUSH event that cannot be read")

    def take(self: Any, message: PushMessage) -> None:
        queue = self.client.queues.numbered(message.queue_id)
        if queue is None:
            self.trouble(f"a message for queue {message.queue_id}, which is not open")
            return
        content = self.contents.unpack(message)
        self.feed.put(Delivery(queue, message.guid, content.payload, content.properties))

    Deliveries.pushed = pushed  # type: ignore[method-assign]
    Deliveries.take = take  # type: ignore[method-assign]


async def witness() -> None:
    """The good messages arrive."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        got: list[bytes] = []

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery.payload)

        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = deliver
        first = PushMessage(queue.q_id, bytes(15) + b"\1", b"first")
        broken = PushMessage(queue.q_id, bytes(15) + b"\2", b"no zlib", compression=Compression.ZLIB)
        last = PushMessage(queue.q_id, bytes(15) + b"\3", b"last")
        server.say(server.connections[0]["name"], Push((first, broken, last)))
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"first", b"last"], got
