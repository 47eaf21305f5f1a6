"""What had no confirm at the loss of a connection is sent again newest first: the server takes all others
for doubles of what it has, confirms them, and they are lost. Like eclipse-paho/paho.mqtt.golang 731 and
eclipse-paho/paho.mqtt.c 807 (messages that are sent again out of order).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
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

    def attach(self: Any, connection: Any, publisher_id: int, sequence: int | None) -> None:
        self.connection = connection
        self.publisher_id = publisher_id
        connection.publishers[publisher_id] = self
        if sequence is not None:
            self.next_id = max(self.next_id, sequence + 1)
        self.write([self.pending[key] for key in reversed(self.pending)])

    Publisher.attach = attach  # type: ignore[method-assign]


async def witness() -> None:
    """All messages of a named publisher are stored, in their order."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = made(broker)
        await client.connect(5)
        [receipt] = await client.publishing.publish("s", [b"0"], name="p")
        await receipt.confirmed()
        broker.faults.add(drop(kind="Publish", direction="in"))
        receipts = []
        for body in (b"1", b"2", b"3"):
            receipts += await client.publishing.publish("s", [body], name="p", timeout=30)
        await asyncio.sleep(0.2)
        broker.faults.clear()
        broker.kill()
        for receipt in receipts:
            await receipt.confirmed()
        bodies = [message.body for message in broker.messages("s")]
        await client.close(5)
    assert bodies == [b"0", b"1", b"2", b"3"], bodies
