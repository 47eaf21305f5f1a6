"""A confirm counts for all publishing ids up to the highest that it names. Like agoragames/haigha 101 (the
client takes each acknowledgement for one of everything before, and what the broker says of an earlier
message after that is lost).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def confirmed(self: Any, ids: Any) -> None:
        highest = max(ids, default=0)
        for publishing_id in [each for each in self.pending if each <= highest]:
            self.settle(publishing_id, None)

    Publisher.confirmed = confirmed  # type: ignore[method-assign]


async def witness() -> None:
    """A message whose confirm is lost is unknown, although the one after it was confirmed."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5.0)
        broker.faults.add(drop(role="confirm", nth=1, scope="run"))

        async def outcome(body: bytes) -> str:
            [receipt] = await client.publishing.publish("orders", [body], timeout=5.0)
            try:
                await receipt.confirmed()
            except ClientError as error:
                return error.kind
            return "confirmed"

        first = asyncio.create_task(outcome(b"tea"))
        await asyncio.sleep(1)
        second = await outcome(b"milk")
        found = [await first, second]
        client.abort()
    assert found == ["timeout", "confirmed"], found
