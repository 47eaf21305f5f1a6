"""A chunk of which nothing reaches the application (it wanted other messages, or none could be read) gives
no credit back: after as many such chunks as there was credit, the subscription gets nothing any more. Like
apache/artemis 4627 (credits are not given back for messages that are skipped).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""

    async def deliver_message(self: Any, subscription: Any, arrival: Any, on_message: Any) -> None:
        callbacks = self.runtime.callbacks
        messages = subscription.messages(arrival.chunk, lambda e: callbacks.trouble("decode", e))
        if not messages:
            return
        for message in messages:
            if subscription.generation != arrival.generation:
                return
            subscription.delivered(message)
            await callbacks.contain_async("message", lambda message=message: on_message(message))
        if subscription.generation == arrival.generation:
            subscription.processed(arrival.chunk)
            if subscription.connection is not None:
                subscription.connection.owner.flush()

    Consuming.deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """A message behind many chunks that are not wanted is delivered."""
    seen: list[bytes] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = made(broker)
        await client.connect(5)

        async def take(message: Message) -> None:
            seen.append(message.body)

        await client.consuming.subscribe("s", take, credit=2, accepts=lambda body: body.startswith(b"k"))
        for body in ("a", "b", "c", "k"):
            broker.publish("s", body)
            await asyncio.sleep(0.5)
        await asyncio.sleep(3)
        await client.close(5)
    assert seen == [b"k"], seen
