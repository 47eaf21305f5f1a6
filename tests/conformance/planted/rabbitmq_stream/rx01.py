"""A consumer that began at the end of the stream begins there again after each reconnect: what was published
during the outage is never delivered. Like rabbitmq/rabbitmq-dotnet-client 1314 and rabbitmq-community/rstream
248 (the first position is taken again after a reconnect).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Start, Subscription
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import OffsetType


def plant() -> None:
    """Install the defect."""

    def position(self: Subscription) -> Start:
        if self.next_offset is None or self.start.type in (OffsetType.NEXT, OffsetType.LAST):
            return self.start
        return Start(OffsetType.OFFSET, self.next_offset)

    Subscription.position = position  # type: ignore[method-assign]


async def witness() -> None:
    """What was published during an outage comes after it."""
    seen: list[bytes] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5)

        async def on_message(message: Message) -> None:
            seen.append(message.body)

        await client.consuming.subscribe("orders", on_message, start=Start(OffsetType.NEXT))
        broker.publish("orders", "before")
        await asyncio.sleep(1)
        broker.refuse(3)
        broker.kill()
        await asyncio.sleep(1)
        broker.publish("orders", "meanwhile")
        await asyncio.sleep(20)
        broker.publish("orders", "after")
        await asyncio.sleep(1)
        await client.close(5)
    assert seen == [b"before", b"meanwhile", b"after"], seen
