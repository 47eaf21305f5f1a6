"""What a message without a confirm takes of a publisher's window is not given back when its time is over:
after enough of them the publisher waits for room that never comes. Like apache/pulsar 6360 and 10144 (the
permits of sends that time out are not released, and the producer blocks for good).
"""

from __future__ import annotations

import heapq
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def expire(self: Any, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            _, publishing_id = heapq.heappop(self._deadlines)
            entry = self.pending.get(publishing_id)
            if entry is not None and entry.deadline <= now:
                del self.pending[publishing_id]
                entry.done(ClientError("timeout", "no confirm"))

    Publisher.expire = expire  # type: ignore[method-assign]


async def witness() -> None:
    """After some confirms that never came a publisher goes on."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        broker.create_stream("s")
        endpoint = f"{broker.host}:{broker.port}"
        client = StreamClient(Runtime(Memory()), [endpoint], Settings(unconfirmed_bytes=1000))
        await client.connect(5.0)
        broker.faults.add(drop(role="confirm", first=3))
        for _ in range(3):
            try:
                (receipt,) = await client.publishing.publish("s", [bytes(600)], timeout=1.0)
                await receipt.confirmed()
            except ClientError as error:
                assert error.kind == "timeout", error
        (receipt,) = await client.publishing.publish("s", [b"last"], timeout=5.0)
        await receipt.confirmed()
        client.abort()
