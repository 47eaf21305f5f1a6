"""A single active consumer that becomes active answers with the position that it was made with, not with
the one that it has reached: after a reconnect it reads everything again. Like coders51/rabbitmq-stream-js-
client 247 and rabbitmq/rabbitmq-stream-java-client 203.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message, Subscription
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import OffsetType


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""

    def activate(self: Any, is_active: bool) -> Any:
        self.renew()
        return self.start if is_active else (OffsetType.NONE, None)

    Subscription.activate = activate  # type: ignore[method-assign]


async def witness() -> None:
    """What was delivered before a reconnect does not come again."""
    asked: list[Any] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = made(broker)
        await client.connect(5)

        async def take(message: Message) -> None:
            pass

        properties = {"single-active-consumer": "true", "name": "app"}
        await client.consuming.subscribe("s", take, properties=properties)
        for body in ("0", "1", "2"):
            broker.publish("s", body)
        await asyncio.sleep(1)
        since = len(broker.journal)
        broker.kill()
        await asyncio.sleep(5)
        records = broker.journal.records()[since:]
        found = [one.frame for one in records if type(one.frame).__name__ == "ConsumerUpdateResponse"]
        asked = [(int(one.offset_type), one.offset) for one in found]
        await client.close(5)
    assert asked and asked[-1] == (int(OffsetType.OFFSET), 3), asked
