"""The position of a subscription moves with whole chunks only: after a reconnect in the middle of a chunk,
what the application had of it comes again. Like rabbitmq/rabbitmq-dotnet-client 1314 and kafka4beam/brod
291 (redelivery after a resubscribe).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Subscription
from fakebrokers import RabbitMQStream


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""

    def delivered(self: Subscription, message: Message) -> None:
        pass

    Subscription.delivered = delivered  # type: ignore[method-assign]


async def witness() -> None:
    """Each message is delivered once, with a loss in the middle of a chunk."""
    seen: list[int] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        broker.publish("s", [str(n) for n in range(5)])
        client = made(broker)
        await client.connect(5)

        async def take(message: Message) -> None:
            seen.append(message.offset)
            await asyncio.sleep(1)

        await client.consuming.subscribe("s", take)
        await asyncio.sleep(2.5)
        broker.kill()
        await asyncio.sleep(20)
        await client.close(5)
    assert seen == [0, 1, 2, 3, 4], seen
