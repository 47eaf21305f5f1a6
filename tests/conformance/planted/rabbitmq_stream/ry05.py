"""When one partition of a super stream cannot be subscribed to, the call fails, and the partitions before
it go on delivering to an application that has no handle to end them. Like rabbitmq/rabbitmq-dotnet-client
658 (an error half-way leaves things as they are) and RobotWebTools/rosbridge_suite 948 (stale
subscriptions).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers import RabbitMQStream
from fakebrokers.faults.build import drop


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""

    async def subscribe(
        self: Any,
        super_stream: str,
        on_message: Any,
        *,
        properties: Any,
        timeout: float | None = None,
        **more: Any,
    ) -> Any:
        deadline = self.client.runtime.clock.deadline(timeout)
        return [
            await self.client.consuming.subscribe(
                partition,
                lambda message, partition=partition: on_message(partition, message),
                properties={**properties, **self.named(super_stream)},
                timeout=deadline - self.client.runtime.clock.now(),
                **more,
            )
            for partition in await self.partitions(super_stream, deadline)
        ]

    SuperStreams.subscribe = subscribe  # type: ignore[method-assign]


async def witness() -> None:
    """After a failed subscribe nothing is delivered."""
    seen: list[bytes] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_super_stream("all", ["all-0", "all-1"], ["0", "1"])
        client = made(broker)
        await client.connect(5)
        broker.faults.add(drop(kind="SubscribeResponse", direction="out", nth=2))

        async def take(partition: str, message: Message) -> None:
            seen.append(message.body)

        kind = ""
        try:
            await client.super_streams.subscribe("all", take, properties={}, timeout=2)
        except ClientError as error:
            kind = error.kind
        broker.publish("all-0", "x")
        await asyncio.sleep(2)
        await client.close(5)
    assert kind == "timeout", kind
    assert not seen, seen
