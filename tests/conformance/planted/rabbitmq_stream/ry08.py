"""A publisher that was deleted stays in the client's table: the next publish to that stream finds it there
and fails, whatever the application does. Like rabbitmq-community/rstream 204 (what was ended is used again
by the next one of the same name).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""
    plain = Publishing.delete_publisher

    async def delete_publisher(self: Any, stream: str, name: str | None, timeout: float | None) -> None:
        there = self.publishers.get((stream, name))
        await plain(self, stream, name, timeout)
        if there is not None:
            self.publishers[stream, name] = there

    Publishing.delete_publisher = delete_publisher  # type: ignore[method-assign]


async def witness() -> None:
    """A stream can be published to again after its publisher was deleted."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = made(broker)
        await client.connect(5)
        for _ in range(2):
            [receipt] = await client.publishing.publish("s", [b"x"], name="p")
            await receipt.confirmed()
            await client.publishing.delete_publisher("s", "p", 5)
        await client.close(5)
