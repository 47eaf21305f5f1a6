"""Empty parts at the end of a body are lost on their way to the application: a message of three parts
arrives as one of two. Like node-rdkafka 36 and librdkafka 60 (what is empty counts as not there).
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
    original = Consumer.body

    def body(self: Consumer, parts: Parts, delimiter: int) -> Parts:
        found = original(self, parts, delimiter)
        while len(found) > 1 and not found[-1]:
            found = found[:-1]
        return found

    Consumer.body = body  # type: ignore[method-assign]


async def witness() -> None:
    """All parts arrive."""
    got = []

    async def on_message(delivery: Delivery) -> None:
        got.append(delivery.body)

    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)
        client.subscribe(on_message)
        broker.publish(b"head", b"rest", b"")
        await asyncio.sleep(1)
        await client.close()
    assert got == [(b"head", b"rest", b"")], got
