"""What a late answer has granted is not given back: a queue whose opening has timed out stays open at the
broker, for as long as the connection lasts. Like apache/pulsar 13161 (no CloseProducer after a time-out).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.requests import Requests
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import late_answer
from fakebrokers.blazingmq.frames import Response

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""

    def forget(self: Requests, number: int, answer: asyncio.Future[Response]) -> None:
        self.waiting.pop(number, None)

    Requests.forget = forget  # type: ignore[method-assign]


async def witness() -> None:
    """A queue that nobody has is closed again."""
    async with BlazingMQ(memory=True) as broker:
        broker.faults.add(late_answer("openQueueResponse", 3.0, first=1))
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        with suppress(ClientError):
            await client.queues.open("q", URI, frozenset({"read"}), {}, 1)
        await asyncio.sleep(10)
        handles = len(broker.queue(URI).handles)
        client.abort()
    assert handles == 0, handles
