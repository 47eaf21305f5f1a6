"""When the last publisher of a connection to a further node is deleted, the connection is closed although
subscriptions live on it: their consumers get nothing any more and are told nothing. Like assimbly/gateway 221
(when one flow stops, others that share the connection stop too).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    def leave(self: Locator, link: Link) -> None:
        if link is not self.links.control and link.is_open and not link.core.publishers:
            self.runtime.tasks.spawn(self._part(link))

    Locator.leave = leave  # type: ignore[method-assign]


async def witness() -> None:
    """A consumer goes on when the publisher beside it is deleted."""
    seen: list[bytes] = []
    async with RabbitMQStream(memory=True, nodes=2) as broker:
        broker.create_stream("orders", initial_cluster_size=1)
        endpoint = f"{broker.nodes[1].host}:{broker.nodes[1].port}"
        client = StreamClient(Runtime(Memory()), [endpoint])
        await client.connect(5)

        async def on_message(message: Message) -> None:
            seen.append(message.body)

        await client.consuming.subscribe("orders", on_message)
        for receipt in await client.publishing.publish("orders", [b"one"]):
            await receipt.confirmed()
        await client.publishing.delete_publisher("orders", None, 5)
        await asyncio.sleep(1)
        broker.publish("orders", "two")
        await asyncio.sleep(10)
        await client.close(5)
    assert seen == [b"one", b"two"], seen
