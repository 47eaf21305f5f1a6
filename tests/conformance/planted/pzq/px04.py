"""A consumer at several brokers acknowledges to the broker that has delivered last, whichever the message
came from: the right one never hears of it and sends the message again and again. Like apache/pulsar 11722 (a
nack that goes to another broker) and galaxyproject/galaxy 808 (acknowledgements on the wrong queue when
several are consumed).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    receive = Consumer.receive

    def noting(self: Consumer, parts: Parts) -> None:
        if parts:
            self.last_peer = parts[0]  # type: ignore[attr-defined]
        receive(self, parts)

    def acknowledgement(self: Consumer, delivery: Delivery, positive: bool) -> Parts:
        peer: bytes = self.last_peer  # type: ignore[attr-defined]
        return (peer, delivery.key, b"1" if positive else b"0")

    Consumer.receive = noting  # type: ignore[method-assign]
    Consumer.acknowledgement = acknowledgement  # type: ignore[method-assign]


async def witness() -> None:
    """Both brokers get their acknowledgements."""
    async with PZQ(memory=True) as one, PZQ(memory=True) as other:
        client = PzqClient(Runtime(Memory()), {**one.urls, "send": [one.urls["send"], other.urls["send"]]})

        async def deliver(delivery: Delivery) -> None:
            await asyncio.sleep(1)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(deliver)
        one.publish(b"from one")
        other.publish(b"from the other")
        await asyncio.sleep(4)
        left = [len(one.messages()), len(other.messages())]
        await client.close()
    assert left == [0, 0], left
