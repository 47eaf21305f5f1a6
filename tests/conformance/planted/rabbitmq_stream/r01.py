"""After a reconnect a consumer is subscribed again without the properties it was made with, so that a
single active consumer loses its name and its group. Like ruby-amqp/amqp 127 and vertx-rabbitmq-client 219:
what was set up for a consumer is not set up again by the recovery.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Subscription
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    original = Subscription.detach

    def detach(self: Subscription) -> None:
        original(self)
        self.properties = {}

    Subscription.detach = detach  # type: ignore[method-assign]


async def witness() -> None:
    """Both Subscribe frames say the same of the consumer."""
    wanted = {"name": "app", "single-active-consumer": "true"}

    async def on_message(message: Message) -> None:
        """Nothing is done with it."""

    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        await client.consuming.subscribe("s", on_message, properties=wanted)
        broker.kill()
        await asyncio.sleep(10)
        said = [record.frame.properties for record in broker.journal.select(kind="Subscribe")]
        await client.close()
    assert said == [wanted, wanted], said
