"""A flush returns as soon as one of several publishers has nothing under way, while messages of the others
still wait for their confirms. With one publisher it is right. Like apache/pulsar 5666 and
confluentinc/confluent-kafka-python 1817 (flush returns, and messages remain).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from fakebrokers import RabbitMQStream
from fakebrokers.faults import delay


def plant() -> None:
    """Install the defect."""

    async def flush(self: Any, timeout: float | None = None) -> None:
        deadline = self.runtime.clock.deadline(timeout)
        publishers = self.publishers.values()
        while publishers and all(publisher.pending for publisher in publishers):
            if self.runtime.clock.now() >= deadline:
                raise ClientError("timeout", "confirms are missing")
            await asyncio.sleep(0.01)

    Publishing.flush = flush  # type: ignore[method-assign]


async def witness() -> None:
    """After a flush nothing is under way."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("one")
        server.create_stream("other")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        await client.connect(5)
        await client.publishing.publish("one", [b"a"], timeout=10)
        await client.publishing.flush(10)
        server.faults.add(delay(2, kind="PublishConfirm", first=1))
        await client.publishing.publish("other", [b"b"], timeout=10)
        await client.publishing.flush(10)
        left = client.pending
        client.abort()
    assert left == 0, left
