"""A message that is known is skipped, and that is all: its acknowledgement, which was lost, is not given
again, so it comes again and again and stays in the store. Like fsprojects/pulsar-client-dotnet 351
(messages that the client skips do not give back what they hold at the broker).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""
    plain = Consumer.handle

    async def handle(self: Any, delivery: Any) -> None:
        if self.is_known(delivery):
            self.runtime.callbacks.note(f"{delivery.key!r} came again and was skipped")
            return
        await plain(self, delivery)

    Consumer.handle = handle  # type: ignore[method-assign]


async def witness() -> None:
    """A message whose first acknowledgement was lost leaves the store all the same."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        pzq.faults.add(drop(role="ack", nth=1, scope="run"))
        pzq.publish(b"tea")
        client = PzqClient(Runtime(Memory()), pzq.urls)
        came: list[bytes] = []

        async def deliver(delivery: Delivery) -> None:
            came.append(delivery.body[0])
            await consumer.settle(delivery, True)

        consumer = client.subscribe(deliver)
        await asyncio.sleep(60)
        left = pzq.messages()
        client.abort()
    assert came == [b"tea"], came
    assert not left, left
