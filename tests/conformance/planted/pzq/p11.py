"""With two brokers an acknowledgement goes to the one that delivered last: what the other has delivered
stays there and comes again. Like EasyNetQ 1329 and bunny 142 (acknowledgements that reach somebody who does
not know them).
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
    last: dict[Consumer, bytes] = {}

    def new_receive(self: Consumer, parts: Parts) -> None:
        last[self] = parts[0]
        receive(self, parts)

    def acknowledgement(self: Consumer, delivery: Delivery, positive: bool) -> Parts:
        return (last.get(self, delivery.pzq_id), delivery.key, b"1" if positive else b"0")

    Consumer.receive = new_receive  # type: ignore[method-assign]
    Consumer.acknowledgement = acknowledgement  # type: ignore[method-assign]


async def witness() -> None:
    """Each broker gets the acknowledgement of its own message."""
    async with PZQ(memory=True) as one, PZQ(memory=True) as two:
        urls = {**one.urls, "send": [one.send_url, two.send_url]}
        client = PzqClient(Runtime(Memory()), urls)

        async def on_message(delivery: Delivery) -> None:
            await asyncio.sleep(1)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(on_message)
        await asyncio.sleep(0.5)
        one.publish(b"one")
        await asyncio.sleep(0.5)
        two.publish(b"two")
        await asyncio.sleep(4)
        left = [len(one.messages()), len(two.messages())]
        await client.close()
    assert left == [0, 0], left
