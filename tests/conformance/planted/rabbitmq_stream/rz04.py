"""A chunk that cannot be read (its checksum is wrong) gives no credit back: with each one the server may
send one chunk less, and after as many as the credit the subscription gets nothing any more, and nobody says
why. Like apache/pulsar-client-go 833 (a corrupted message is discarded, and its permit with it).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream
from fakebrokers.faults import corrupt


def plant() -> None:
    """Install the defect."""
    deliver_message = Consuming.deliver_message

    async def careless(self: Any, subscription: Any, arrival: Any, on_message: Any) -> None:
        problems: list[ClientError] = []
        if not subscription.messages(arrival.chunk, problems.append) and problems:
            self.runtime.callbacks.trouble("decode", problems[0])
            return
        await deliver_message(self, subscription, arrival, on_message)

    Consuming.deliver_message = careless  # type: ignore[method-assign]


async def witness() -> None:
    """The next chunk comes all the same."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        got: list[bytes] = []

        async def deliver(message: Message) -> None:
            got.append(message.body)

        await client.connect(5)
        await client.consuming.subscribe("s", deliver, credit=1, timeout=5)
        server.faults.add(corrupt(at=-1, kind="Deliver", first=1))
        server.publish("s", "bad")
        await asyncio.sleep(1)
        server.publish("s", "good")
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"good"], got
