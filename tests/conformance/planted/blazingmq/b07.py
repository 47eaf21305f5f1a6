"""A message that cannot be read takes the rest of its event with it: good messages behind it never reach
the application. Like karafka-rdkafka 473 and apache/pulsar 25386.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import Push, PushMessage
from fakebrokers.errors import WireError


def plant() -> None:
    """Install the defect."""

    def pushed(self: Deliveries, frame: Push) -> None:
        try:
            for message in frame.messages:
                queue = self.client.queues.numbered(message.queue_id)
                if queue is None:
                    self.trouble(f"a message for queue {message.queue_id}, which is not open")
                    continue
                content = self.contents.unpack(message)
                self.feed.put(Delivery(queue, message.guid, content.payload, content.properties))
        except WireError as error:
            self.trouble(f"an event that cannot be read: {error}")
        if frame.rest:
            self.trouble(f"{len(frame.rest)} bytes of a PUSH event that cannot be read")

    Deliveries.pushed = pushed  # type: ignore[method-assign]


async def witness() -> None:
    """The message behind the bad one is delivered."""
    got = []

    async def on_message(delivery: Delivery) -> None:
        got.append(delivery.payload)

    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        queue = await client.queues.open("q", "bmq://bmq.test.mem.priority/q", frozenset({"read"}), {}, 5)
        queue.callback = on_message
        bad = PushMessage(0, bytes(15) + b"1", b"no zlib at all", compression=Compression.ZLIB)
        good = PushMessage(0, bytes(15) + b"2", b"good")
        broker.say("c1", Push((bad, good)))
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"good"], got
