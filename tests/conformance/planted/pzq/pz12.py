"""A message that the application has settled already is dropped when it comes again, but not acknowledged:
if an acknowledgement is lost on its way, the message is sent again and again until the consumer goes. Like
apache/pulsar 7683 (redeliveries that are filtered as duplicates and never acknowledged).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ
from fakebrokers.pzq.faults import lose_consumer_ack


def plant() -> None:
    """Install the defect."""

    async def handle(self: Any, delivery: Delivery) -> None:
        if self.is_known(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} came again and was dropped")
        elif self.filter_expired and self.is_expired(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} had expired and was dropped; it comes again")
        else:
            await self.hand_over(delivery)

    Consumer.handle = handle  # type: ignore[method-assign]


async def witness() -> None:
    """The second acknowledgement removes it."""

    async def taken(delivery: Any) -> None:
        await consumer.settle(delivery, True)

    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        server.faults.add(lose_consumer_ack(first=1))
        consumer = client.subscribe(taken)
        server.publish(b"x")
        await asyncio.sleep(30)
        left = len(server.messages())
        client.abort()
    assert left == 0, left
