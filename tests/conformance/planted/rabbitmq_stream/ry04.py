"""A MetadataUpdate for one stream ends the publishers and subscriptions of all streams on that connection:
what others have under way becomes unknown. Like rabbitmq/rabbitmq-stream-dotnet-client 332 and
coders51/rabbitmq-stream-js-client 185 (whom a MetadataUpdate concerns).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.faults.build import delay


def made(server: Any, reports: list[str] | None = None, **more: Any) -> StreamClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return StreamClient(runtime, [server.url.partition("//")[2]], Settings(**more))


def plant() -> None:
    """Install the defect."""
    plain = Recovery.users_of

    def users_of(self: Any, link: Any, stream: str | None = None) -> Any:
        return plain(self, link)

    Recovery.users_of = users_of  # type: ignore[method-assign]


async def witness() -> None:
    """The end of one stream leaves a publish to another one alone."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("a")
        broker.create_stream("b")
        client = made(broker)
        await client.connect(5)
        for stream in ("a", "b"):
            [receipt] = await client.publishing.publish(stream, [b"0"])
            await receipt.confirmed()
        broker.faults.add(delay(1.0, kind="PublishConfirm", direction="out"))
        [receipt] = await client.publishing.publish("b", [b"1"], timeout=10)
        await asyncio.sleep(0.3)
        broker.delete_stream("a")
        await receipt.confirmed()
        await client.close(5)
