"""A publish counts as a sign of life of the server: on a connection that is dead in one direction the loss
is not noticed as long as the application publishes. Like dotnet/MQTTnet 2259 (a half-open connection is
never detected while publishing).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.faults.build import drop


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""
    write, limit = Publisher.write, Connection.silence_limit

    def noted(self: Any, entries: Any) -> None:
        self.connection.published_at = asyncio.get_running_loop().time()
        write(self, entries)

    def silence_limit(self: Any) -> float | None:
        found = limit(self)
        return (
            None if found is None else max(found, getattr(self, "published_at", 0.0) + 2 * self.heartbeat_s)
        )

    Publisher.write = noted  # type: ignore[method-assign]
    Connection.silence_limit = silence_limit  # type: ignore[method-assign]


async def witness() -> None:
    """A server that says nothing any more is given up while the application publishes."""
    reports: list[str] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = made(broker, reports, heartbeat_s=2)
        await client.connect(5)
        [receipt] = await client.publishing.publish("s", [b"0"])
        await receipt.confirmed()
        broker.faults.add(drop(direction="out"))
        for _ in range(40):
            with contextlib.suppress(ClientError):
                await client.publishing.publish("s", [b"x"], timeout=0.4)
            await asyncio.sleep(0.5)
        client.abort()
    assert "connection_lost" in reports, reports
