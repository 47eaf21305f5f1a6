"""Two consumers of one stream: when the stream has moved, only the first of them goes on, and the other is
silent for ever. Like kafka-python 1494 (the recovery works for one and fails for several) and
rabbitmq-community/rstream 276 (streams that share a connection starve each other when they are recovered).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery, User
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    original = Recovery.users_of

    def users_of(self: Recovery, link: Link, stream: str | None = None) -> list[User]:
        found = original(self, link, stream)
        if stream is None:
            return found
        by_kind = {type(user): user for user in reversed(found)}
        return list(by_kind.values())

    Recovery.users_of = users_of  # type: ignore[method-assign]


async def witness() -> None:
    """Both consumers get what is published after the move."""
    got: dict[str, list[bytes]] = {"a": [], "b": []}

    async def first(message: Message) -> None:
        got["a"].append(message.body)

    async def second(message: Message) -> None:
        got["b"].append(message.body)

    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        await client.consuming.subscribe("s", first)
        await client.consuming.subscribe("s", second)
        broker.restart_stream("s")
        await asyncio.sleep(10)
        broker.publish("s", [b"after"])
        await asyncio.sleep(10)
        await client.close()
    assert got == {"a": [b"after"], "b": [b"after"]}, got
