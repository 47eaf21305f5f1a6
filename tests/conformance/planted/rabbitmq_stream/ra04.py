"""A publish that the application cancels keeps its bytes in the window of unconfirmed messages: the client
reports that it holds them, and after enough of them the publisher waits for ever. Like apache/pulsar 6360
(a failure path that does not release the producer's semaphore).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def forget(self: Any, publishing_id: int) -> None:
        self.pending.pop(publishing_id, None)

    Publisher.forget = forget  # type: ignore[method-assign]


async def witness() -> None:
    """Nothing is held for messages that nobody waits for."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5)
        broker.faults.add(drop(role="confirm"))
        for _ in range(3):
            (receipt,) = await client.publishing.publish("s", [bytes(1000)], timeout=60)
            waiting = asyncio.ensure_future(receipt.confirmed())
            await asyncio.sleep(0.1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(1)
        held = client.buffered_bytes
        client.abort()
    assert held == 0, held
