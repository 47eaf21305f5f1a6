"""An unsubscribe during an outage does not end the reconnecting: the subscription comes back as a ghost,
whose messages nobody gets. Like joewalnes/reconnecting-websocket 54 and rabbitmq/rabbitmq-stream-java-client
846 (the reconnecting goes on after a close).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def stop(self: Subscription) -> None:
        self._is_closing = True

    Subscription._stop = stop  # type: ignore[method-assign]


async def witness() -> None:
    """Nobody consumes any more."""
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "orders")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)

        async def deliver(delivery: Delivery) -> None:
            pass

        subscription = await client.subscribe("orders", deliver)
        broker.refuse(3)
        broker.kill()
        await asyncio.sleep(1)
        await subscription.close()
        await asyncio.sleep(20)
        broker.publish("test", "orders", "x")
        await asyncio.sleep(1)
        left = len(broker.messages("test", "orders"))
        client.abort()
    assert left == 1, left
