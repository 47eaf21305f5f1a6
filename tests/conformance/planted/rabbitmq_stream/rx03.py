"""Whenever a publisher with a name is declared again, it counts on from what the server has: the ids of
messages that are sent again because their confirms are missing are given to new ones too, which the server
then drops as doubles. Like apache/pulsar 2047 (the sequence is reset on a reconnect although messages wait).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream
from fakebrokers.faults.build import fin


def plant() -> None:
    """Install the defect."""

    def attach(self: Publisher, connection: Connection, publisher_id: int, sequence: int | None) -> None:
        self.connection = connection
        self.publisher_id = publisher_id
        connection.publishers[publisher_id] = self
        if sequence is not None:
            self.next_id = sequence + 1
        self.write(list(self.pending.values()))

    Publisher.attach = attach  # type: ignore[method-assign]


async def witness() -> None:
    """What is published after a reconnect is stored."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5)
        for body in (b"one", b"two"):
            for receipt in await client.publishing.publish("orders", [body], name="shop"):
                await receipt.confirmed()
        broker.faults.add(fin(pass_frame=False, role="publish", first=1))
        await client.publishing.publish("orders", [b"three"], name="shop", timeout=30)
        await asyncio.sleep(5)
        for receipt in await client.publishing.publish("orders", [b"four"], name="shop", timeout=30):
            await receipt.confirmed()
        stored = [message.body for message in broker.messages("orders")]
        await client.close(5)
    assert stored == [b"one", b"two", b"three", b"four"], stored
