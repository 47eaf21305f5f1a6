"""The publishing id 0, given by the application, is taken for "none given": the message goes out under an
id of the client's own, often one that the application uses for its next message, whose outcome is then
mixed up with it. All other ids are right. Like SOHU-Co/kafka-node 242 (partition 0 is falsy, and another
one is taken) and Blizzard/node-rdkafka 375.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Entry, Publisher
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    def send(self: Any, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if not entry.publishing_id:
                entry.publishing_id = self.take_id()
            else:
                self.next_id = max(self.next_id, entry.publishing_id + 1)
            self.remember(entry.publishing_id, entry)
        self.write(entries)

    Publisher.send = send  # type: ignore[method-assign]


async def witness() -> None:
    """Each message has the id that it was given, and is stored."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        await client.connect(5)
        receipts = await client.publishing.publish(
            "s", [b"a", b"b", b"c"], name="p", ids=[0, 1, 2], timeout=5
        )
        await asyncio.gather(*(one.confirmed() for one in receipts))
        ids = [one.publishing_id for one in receipts]
        stored = [one.body for one in server.messages("s")]
        client.abort()
    assert ids == [0, 1, 2], ids
    assert stored == [b"a", b"b", b"c"], stored
