"""Messages with an empty body are stored, but no application ever gets them: they are left out as if a
filter did not want them. Like pika/pika 227, postwait/node-amqp 144 and cesanta/mongoose 1831.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Report, Subscription
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    messages = Subscription.messages

    def full(self: Any, chunk: Any, report: Report) -> list[Message]:
        return [message for message in messages(self, chunk, report) if message.body]

    Subscription.messages = full  # type: ignore[method-assign]


async def witness() -> None:
    """It is delivered like any other."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        got: list[bytes] = []

        async def deliver(message: Message) -> None:
            got.append(message.body)

        await client.connect(5)
        await client.consuming.subscribe("s", deliver, timeout=5)
        server.publish("s", [b"a", b"", b"b"])
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"a", b"", b"b"], got
