"""A chunk of which the application wants no message gives no credit back: a consumer with a filter stands
still after as many of them as it had credit. Like fsprojects/pulsar-client-dotnet 351 (what is skipped
before it becomes visible keeps its permit).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    async def deliver_message(self: Any, subscription: Any, arrival: Any, on_message: Any) -> None:
        callbacks = self.runtime.callbacks
        chunk = arrival.chunk
        messages = subscription.messages(chunk, lambda e: callbacks.trouble("decode", e))
        for message in messages:
            if subscription.generation != arrival.generation:
                return
            subscription.delivered(message)
            await callbacks.contain_async("message", lambda message=message: on_message(message))
            if message is messages[-1] and subscription.generation == arrival.generation:
                subscription.processed(chunk)
                if subscription.connection is not None:
                    subscription.connection.owner.flush()

    Consuming.deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """What is wanted comes, however much else is in front of it."""
    got: list[bytes] = []

    async def take(message: Any) -> None:
        got.append(message.body)

    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        for number in range(6):
            broker.publish("s", b"other:%d" % number)
        broker.publish("s", b"mine:1")
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5)
        await client.consuming.subscribe(
            "s", take, credit=2, accepts=lambda body: body.startswith(b"mine:"), timeout=5
        )
        await asyncio.sleep(2)
        client.abort()
    assert got == [b"mine:1"], got
