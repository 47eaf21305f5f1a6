"""What a consumer is subscribed with again after a loss has no `limit`: from then on it gets as much at once
as the server's default allows. Like smallrye/smallrye-reactive-messaging 2084, vert-x3/vertx-rabbitmq-client
219 and ruby-amqp/amqp 127 (the prefetch is gone after a reconnect).
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
    reopen = Subscription.reopen

    async def without(self: Subscription) -> None:
        self._query = {name: value for name, value in self._query.items() if name != "limit"}
        await reopen(self)

    Subscription.reopen = without  # type: ignore[method-assign]


async def witness() -> None:
    """One message at a time, after a reconnect too."""
    async with Narconi(memory=True) as broker:
        for number in range(5):
            broker.publish("test", "orders", f"{number}")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)

        async def deliver(delivery: Delivery) -> None:
            pass

        await client.subscribe("orders", deliver, ack=True, limit=1)
        await asyncio.sleep(1)
        before = broker.unacked("test", "orders")
        broker.kill()
        await asyncio.sleep(10)
        after = broker.unacked("test", "orders")
        client.abort()
    assert (before, after) == (1, 1), (before, after)
