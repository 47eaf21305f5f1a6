"""For a chunk in which nothing was wanted no credit is given back: a consumer with a filter comes to a halt
after as many of them as it had credit. Like fsprojects/pulsar-client-dotnet 351 (skipped messages do not
return their permit).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Report, Subscription
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.chunk import MAGIC, Chunk
from fakebrokers.rabbitmq_stream.codes import OffsetType


def plant() -> None:
    """Install the defect."""
    messages = Subscription.messages

    def counted(self: Subscription, chunk: Chunk, report: Report) -> list[Message]:
        found = messages(self, chunk, report)
        self.has_found = bool(found)  # type: ignore[attr-defined]
        return found

    def processed(self: Subscription, chunk: Chunk) -> None:
        if chunk.magic == MAGIC:
            asked = self.position()
            floor = asked.value or 0 if asked.type == OffsetType.OFFSET else 0
            self.next_offset = max(floor, self.next_position(chunk))
        if self.connection is not None and self.has_found:  # type: ignore[attr-defined]
            self.owed -= 1
            if not self.is_closed:
                self.connection.give_credit(self.subscription_id)

    Subscription.messages = counted  # type: ignore[method-assign]
    Subscription.processed = processed  # type: ignore[method-assign]


async def witness() -> None:
    """A message that is wanted comes, however many were not."""
    seen: list[bytes] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5)

        async def on_message(message: Message) -> None:
            seen.append(message.body)

        def accepts(body: bytes) -> bool:
            return body.startswith(b"eu ")

        await client.consuming.subscribe("orders", on_message, credit=2, accepts=accepts)
        for number in range(6):
            broker.publish("orders", f"us {number}")
            await asyncio.sleep(0.5)
        broker.publish("orders", "eu 1")
        await asyncio.sleep(2)
        await client.close(5)
    assert seen == [b"eu 1"], seen
