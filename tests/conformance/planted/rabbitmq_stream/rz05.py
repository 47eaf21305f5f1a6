"""The end of the last subscription on a connection to a further node closes that connection, though a
publisher still uses it: the publisher is not told, and what it sends from then on disappears until it times
out. Like hornetq/hornetq 524 (the close of a user that closes what others share).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    def leave(self: Any, link: Any) -> None:
        if link is not self.links.control and link.is_open and not link.core.subscriptions:
            self.runtime.tasks.spawn(self._part(link))

    Locator.leave = leave  # type: ignore[method-assign]


async def witness() -> None:
    """The publisher goes on after the subscription has ended."""
    async with RabbitMQStream(memory=True, nodes=2) as server:
        server.create_stream("s", initial_cluster_size=1)
        client = StreamClient(Runtime(Memory()), [server.urls["node2"].partition("//")[2]])

        async def deliver(_: Message) -> None:
            pass

        async def publish() -> None:
            receipts = await client.publishing.publish("s", [b"x"], timeout=5)
            await receipts[0].confirmed()

        await client.connect(5)
        await publish()
        subscription = await client.consuming.subscribe("s", deliver, timeout=5)
        await client.consuming.unsubscribe(subscription, timeout=5)
        await asyncio.sleep(1)
        await publish()
        client.abort()
