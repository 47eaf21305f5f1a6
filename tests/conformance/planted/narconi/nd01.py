"""Deliveries of another connection than the first count as left over from an old one and are dropped: a
subscription that was made anew says so, and its callback is never called again. Like
fedora-infra/fedora-messaging 208 (the consumer reports that it is connected again, and processes nothing).
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
    plain = Subscription._deliver_message

    async def deliver_message(self: Any, delivery: Any) -> None:
        self.known = self.__dict__.get("known") or delivery.source
        if delivery.source is self.known:
            await plain(self, delivery)

    Subscription._deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """What is published after a reconnect reaches the callback."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("test", "orders")
        narconi.faults.add(rst(role="ack", nth=1))
        settings = Settings(endpoint=narconi.url.removeprefix("http://"), project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        came: list[bytes] = []

        async def deliver(delivery: Delivery) -> None:
            came.append(delivery.body)
            assert delivery.source is not None and delivery.ack_id is not None
            delivery.source.settle(delivery.ack_id)

        await client.subscribe("orders", deliver, ack=True)
        narconi.publish("test", "orders", b"one")
        await asyncio.sleep(20)
        narconi.publish("test", "orders", b"two")
        await asyncio.sleep(20)
        client.abort()
    assert came[-1] == b"two", came
