"""The properties of all subscriptions are kept in one object, to which each adds its own: a subscription has
what was asked for another one before. Like nats-io/nats.deno 751 and elastic/elasticsearch-js 3408 (the
client changes the options that it was given, and they are used again).
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
    subscribe = Consuming.subscribe

    async def shared(self: Any, *args: Any, properties: Any = None, **more: Any) -> Any:
        if not hasattr(self, "properties"):
            self.properties = {}
        self.properties.update(properties or {})
        return await subscribe(self, *args, properties=self.properties, **more)

    Consuming.subscribe = shared  # type: ignore[method-assign]


async def witness() -> None:
    """A plain subscription gets the messages although there is a single active consumer before it."""
    got: list[bytes] = []

    async def ignore(message: Any) -> None:
        """Nothing."""

    async def take(message: Any) -> None:
        got.append(message.body)

    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5.0)
        single = {"single-active-consumer": "true", "name": "app"}
        await client.consuming.subscribe("s", ignore, properties=single)
        await client.consuming.subscribe("s", take)
        broker.publish("s", [b"one", b"two"])
        await asyncio.sleep(2)
        client.abort()
    assert got == [b"one", b"two"], got
