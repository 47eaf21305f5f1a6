"""A subscription that is lost in the middle of a chunk gets the messages of that chunk again which it had
already: what a chunk brings too much in front is measured by where the application once wanted to begin,
not by where it is. Losses between chunks do no harm. Like rabbitmq/rabbitmq-dotnet-client 1314 and
rabbitmq/rabbitmq-stream-rust-client 222.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Subscription
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import OffsetType


def plant() -> None:
    """Install the defect."""

    def is_wanted(self: Any, offset: int) -> bool:
        start, value = self.start
        return start != OffsetType.OFFSET or value is None or offset >= value

    Subscription.is_wanted = is_wanted  # type: ignore[method-assign]


async def witness() -> None:
    """Each message comes once."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        got: list[bytes] = []

        async def deliver(message: Message) -> None:
            got.append(message.body)
            if message.offset == 2 and len(got) == 3:
                server.kill()
                await asyncio.sleep(5)

        await client.connect(5)
        await client.consuming.subscribe("s", deliver, timeout=5)
        server.publish("s", ["0", "1", "2", "3", "4"])
        await asyncio.sleep(15)
        client.abort()
    assert got == [b"0", b"1", b"2", b"3", b"4"], got
