"""After a cumulative acknowledgement the last message that it names still counts as not acknowledged: a drain
waits for it until its time is up. Like apache/pulsar 8606 (the tracker of unacknowledged messages after a
cumulative ack).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Consumer, Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def settle_to(self: Consumer, ack_id: str) -> None:
        if ack_id not in self.outstanding:
            raise ClientError("invalid", "this delivery waits for no acknowledgement")
        del self.outstanding[: self.outstanding.index(ack_id)]
        self.command({"ackToId": ack_id})

    Consumer.settle_to = settle_to  # type: ignore[method-assign]


async def witness() -> None:
    """A drain ends when all is acknowledged."""
    held: list[Delivery] = []
    problem = ""
    async with Narconi(memory=True) as broker:
        for number in range(3):
            broker.publish("test", "orders", f"{number}")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)

        async def deliver(delivery: Delivery) -> None:
            held.append(delivery)

        subscription = await client.subscribe("orders", deliver, ack=True)
        await asyncio.sleep(1)
        last = held[-1]
        assert last.source is not None and last.ack_id is not None
        last.source.settle_to(last.ack_id)
        try:
            await asyncio.wait_for(subscription.drain(), 5)
        except TimeoutError:
            problem = "the drain does not end"
        client.abort()
    assert problem == "", problem
