"""A named publisher that comes back after a loss counts on from what the server has stored, though messages
with higher ids still wait and are sent again: the next new message gets an id that one of them has. The
server takes it for a copy, confirms it, and does not store it. Without messages under way at the loss all
is well. Like pathosDev/actor-ts 726 (a sequence that begins too low, and new messages are absorbed as
duplicates).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def attach(self: Any, connection: Any, publisher_id: int, sequence: int | None) -> None:
        self.connection = connection
        self.publisher_id = publisher_id
        connection.publishers[publisher_id] = self
        if sequence is not None:
            self.next_id = sequence + 1
        self.write(list(self.pending.values()))

    Publisher.attach = attach  # type: ignore[method-assign]


async def witness() -> None:
    """All messages are stored once."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        await client.connect(5)
        publish = client.publishing.publish
        receipts = await publish("s", [b"a"], name="p", timeout=30)
        await receipts[0].confirmed()
        server.faults.add(drop(kind="Publish", first=1, scope="run"))
        receipts += await publish("s", [b"b", b"c"], name="p", timeout=30)
        await asyncio.sleep(0.5)
        server.kill()
        await asyncio.sleep(5)
        receipts += await publish("s", [b"d"], name="p", timeout=30)
        await asyncio.gather(*(one.confirmed() for one in receipts))
        stored = [one.body for one in server.messages("s")]
        client.abort()
    assert stored == [b"a", b"b", b"c", b"d"], stored
