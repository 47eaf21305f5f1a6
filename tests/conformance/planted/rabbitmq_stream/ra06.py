"""Publishes that begin at the same time declare a publisher each: one is used, the others stay behind at
the broker; where the publisher has a name, the broker refuses all but the first, and their messages fail.
Like apache/camel 24727 and onyx-platform/onyx 389 (lazy creation without a lock).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.requests import Undo
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.frames import DeclarePublisher, DeletePublisher


def plant() -> None:
    """Install the defect."""

    async def declared(self: Any, publisher: Any, deadline: float) -> None:
        while publisher.connection is None:
            self._check_open(publisher)
            if self._may_declare(publisher):
                await self.declare(publisher, deadline)
            else:
                await self.links.until(lambda: self._may_declare(publisher), deadline)

    async def declare(self: Any, publisher: Any, deadline: float) -> None:
        link = await self.client.locator.leader_link(publisher.stream, deadline)
        self._check_open(publisher)
        publisher_id, reference = link.core.free_publisher_id(), publisher.name or ""
        undo = Undo(DeletePublisher, (publisher_id,))
        await link.ask(
            DeclarePublisher, publisher_id, reference, publisher.stream, deadline=deadline, undo=undo
        )
        sequence = await self.sequence_of(publisher, link, deadline) if publisher.name else None
        if not link.is_open:
            raise ClientError("connection", "the connection was lost meanwhile", definite=False)
        if publisher.is_closed:
            link.take_back(DeletePublisher, publisher_id)
        self._check_open(publisher)
        if publisher.connection is None:
            publisher.attach(link.core, publisher_id, sequence)
            link.settle()

    Publishing.declared = declared  # type: ignore[method-assign]
    Publishing.declare = declare  # type: ignore[method-assign]


async def witness() -> None:
    """There is one publisher, and all messages are stored."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5)

        async def publish(body: bytes, name: str | None) -> None:
            for receipt in await client.publishing.publish("s", [body], name=name, timeout=5):
                await receipt.confirmed()

        await asyncio.gather(*(publish(b"%d" % number, None) for number in range(3)))
        asked = len(broker.journal.select(kind="DeclarePublisher"))
        await asyncio.gather(*(publish(b"%d" % number, "app") for number in range(3)))
        client.abort()
        stored = len(broker.messages("s"))
    assert asked == 1, asked
    assert stored == 6, stored
