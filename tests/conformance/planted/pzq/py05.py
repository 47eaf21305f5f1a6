"""A consumer of several instances remembers who delivered last, and acknowledges there: with messages of
two instances at hand, one acknowledgement goes astray and its message comes again. Like apache/pulsar 23943
and sstone/amqp-client 30 (acknowledgements on another channel than the delivery's).
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
    plain = Consumer.read

    def read(self: Any, parts: Any) -> Delivery:
        delivery = plain(self, parts)
        self._instance = delivery.pzq_id
        return delivery

    def acknowledgement(self: Any, delivery: Delivery, positive: bool) -> Any:
        return (self._instance, delivery.key, b"1" if positive else b"0")

    Consumer.read = read  # type: ignore[method-assign]
    Consumer.acknowledgement = acknowledgement  # type: ignore[method-assign]


async def witness() -> None:
    """Each instance gets the acknowledgement of its message."""
    found: list[Delivery] = []
    async with PZQ(memory=True) as one, PZQ(memory=True) as two:
        urls = {**one.urls, "send": [one.urls["send"], two.urls["send"]]}
        client = PzqClient(Runtime(Memory()), urls)

        async def take(delivery: Delivery) -> None:
            found.append(delivery)

        consumer = client.subscribe(take)
        one.publish(b"1")
        await asyncio.sleep(0.2)
        two.publish(b"2")
        await asyncio.sleep(0.2)
        for delivery in found:
            await consumer.settle(delivery, True)
        await asyncio.sleep(1)
        left = [len(one.messages()), len(two.messages())]
        await client.close()
    assert len(found) == 2
    assert left == [0, 0], left
