"""A consumer at several brokers acknowledges to the one that it heard from last, not to the one that sent
the message: acknowledgements that are given later, or in another order, go astray, and those messages come
again. With one broker all is well. Like sstone/amqp-client 30 and ruby-amqp/bunny 142 (acknowledgements
that go to another channel than that of the delivery).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    read = Consumer.read

    def noting(self: Any, parts: Any) -> Delivery:
        delivery = read(self, parts)
        self.peer = delivery.pzq_id
        return delivery

    def acknowledgement(self: Any, delivery: Delivery, positive: bool) -> Any:
        return (self.peer, delivery.key, b"1" if positive else b"0")

    Consumer.read = noting  # type: ignore[method-assign]
    Consumer.acknowledgement = acknowledgement  # type: ignore[method-assign]


async def witness() -> None:
    """Both messages are settled where they came from."""
    async with PZQ(memory=True) as one, PZQ(memory=True) as other:
        urls: dict[str, Any] = {**one.urls, "send": [one.send_url, other.send_url]}
        client = PzqClient(Runtime(Memory()), urls)
        got: list[Delivery] = []

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery)

        consumer = client.subscribe(deliver)
        one.publish(b"a")
        await asyncio.sleep(0.5)
        other.publish(b"b")
        await asyncio.sleep(0.5)
        assert len(got) == 2, got
        for delivery in got:
            await consumer.settle(delivery, True)
        await asyncio.sleep(0.5)
        left = [*one.messages(), *other.messages()]
        client.abort()
    assert not left, left
