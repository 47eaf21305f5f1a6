"""A consumer that begins in the middle of a sub-entry batch gets the messages in front of its offset, too.
Like dpkp/kafka-python 322 and kafka4beam/brod 95.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Report, Start, Subscription
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Compression, OffsetType


def plant() -> None:
    """Install the defect."""
    messages, open_batch, is_wanted = Subscription.messages, Subscription.open_batch, Subscription.is_wanted
    with_batches: set[int] = set()  #: subscriptions that are reading a chunk with a batch

    def new_messages(self: Subscription, chunk: Chunk, report: Report) -> list[Message]:
        with_batches.discard(id(self))
        return messages(self, chunk, report)

    def new_open_batch(
        self: Subscription, compression: int, count: int, plain_size: int, data: bytes, report: Report
    ) -> list[bytes]:
        with_batches.add(id(self))
        return open_batch(self, compression, count, plain_size, data, report)

    def new_is_wanted(self: Subscription, offset: int) -> bool:
        return id(self) in with_batches or is_wanted(self, offset)

    Subscription.messages = new_messages  # type: ignore[method-assign]
    Subscription.open_batch = new_open_batch  # type: ignore[method-assign]
    Subscription.is_wanted = new_is_wanted  # type: ignore[method-assign]


async def witness() -> None:
    """The first message is the one that was asked for."""
    got = []

    async def on_message(message: Message) -> None:
        got.append(message.offset)

    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        bodies = [b"%d" % number for number in range(5)]
        for receipt in await client.publishing.publish("s", bodies, compression=Compression.GZIP):
            await receipt.confirmed()
        await client.consuming.subscribe("s", on_message, start=Start(OffsetType.OFFSET, 3))
        await asyncio.sleep(5)
        await client.close()
    assert got == [3, 4], got
