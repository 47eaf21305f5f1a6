"""After an acknowledgement of several deliveries at once the client counts only the last of them as
settled: a graceful end waits for the others until its time is over. Near to bunny 221 (one answer that
settles a range).
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
        self.outstanding.remove(ack_id)
        self.command({"ackToId": ack_id})

    Consumer.settle_to = settle_to  # type: ignore[method-assign]


async def witness() -> None:
    """Nothing is left to wait for."""
    came: list[Delivery] = []

    async def on_message(delivery: Delivery) -> None:
        came.append(delivery)

    async with Narconi(memory=True) as broker:
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        for body in (b"one", b"two", b"three"):
            broker.publish("test", "q", body)
        subscription = await client.subscribe("q", on_message, ack=True)
        await asyncio.sleep(1)
        last = came[-1]
        assert last.source is not None and last.ack_id is not None
        last.source.settle_to(last.ack_id)
        draining = asyncio.ensure_future(subscription.drain())
        await asyncio.wait([draining], timeout=10)
        is_done = draining.done()
        client.abort()
        draining.cancel()
    assert is_done, "it waits for deliveries that are acknowledged"
