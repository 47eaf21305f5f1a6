"""A consumer at several brokers sends each acknowledgement to the one that has delivered last: a message
that is settled after another broker's has come is never acknowledged where it is. Like apache/pulsar 11722
(the nack of a message goes to another broker).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    read = Consumer.read

    def remember(self: Any, parts: tuple[bytes, ...]) -> Any:
        delivery = read(self, parts)
        self.peer = delivery.pzq_id
        return delivery

    def acknowledgement(self: Any, delivery: Any, positive: bool) -> tuple[bytes, ...]:
        return (self.peer, delivery.key, b"1" if positive else b"0")

    Consumer.read = remember  # type: ignore[method-assign]
    Consumer.acknowledgement = acknowledgement  # type: ignore[method-assign]


async def witness() -> None:
    """Each broker gets the acknowledgement of its message."""
    kept: list[Any] = []

    async def take(delivery: Any) -> None:
        kept.append(delivery)

    async with PZQ(memory=True) as one, PZQ(memory=True) as two:
        client = PzqClient(Runtime(Memory()), {**one.urls, "send": [one.send_url, two.send_url]})
        consumer = client.subscribe(take)
        await asyncio.sleep(0.1)
        one.publish(b"of one")
        await asyncio.sleep(0.1)
        two.publish(b"of two")
        await asyncio.sleep(0.1)
        for delivery in kept:
            await consumer.settle(delivery, True)
        await asyncio.sleep(1)
        left = [len(one.messages()), len(two.messages())]
        client.abort()
    assert len(kept) == 2, kept
    assert left == [0, 0], left
