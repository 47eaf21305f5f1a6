"""A subscription that is ended while it is being made anew is made anew all the same: nobody has it, and it
takes messages out of the queue. Like apache/pulsar-client-cpp 518 (closed in the middle of a reconnect, the
consumer stays at the broker).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults import rst


def plant() -> None:
    """Install the defect."""

    def stop(self: Any) -> None:
        self._is_closing = True

    Subscription._stop = stop  # type: ignore[method-assign]


async def witness() -> None:
    """After the end of a subscription whose connection was lost, messages stay in the queue."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("test", "orders")
        narconi.faults.add(rst(role="deliver", nth=1))
        settings = Settings(endpoint=narconi.url.removeprefix("http://"), project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)

        async def deliver(delivery: Delivery) -> None:
            """Nothing is to be done."""

        subscription = await client.subscribe("orders", deliver)
        narconi.publish("test", "orders", b"one")
        await asyncio.sleep(0.1)
        await subscription.close()
        await asyncio.sleep(20)
        narconi.publish("test", "orders", b"two")
        await asyncio.sleep(1)
        left = [message.payload for message in narconi.messages("test", "orders")]
        client.abort()
    assert b"two" in left, left
