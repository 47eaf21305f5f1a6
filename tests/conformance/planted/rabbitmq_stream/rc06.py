"""A stored offset of 0 is taken for none: who has stored the first message of a stream is told that there is
no stored offset. Like YelpArchive/kafka-utils 193 (a committed offset of zero counts as no offset).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import Code


def plant() -> None:
    """Install the defect."""
    query_offset = StreamClient.query_offset

    async def or_none(self: Any, stream: str, reference: str, timeout: float | None = None) -> int:
        found = await query_offset(self, stream, reference, timeout)
        if not found:
            raise ClientError("refused", "there is no stored offset", code=Code.NO_OFFSET)
        return found

    StreamClient.query_offset = or_none  # type: ignore[method-assign]


async def witness() -> None:
    """The offset 0 can be stored and asked for."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        broker.publish("s", [b"one", b"two"])
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5.0)
        await client.store_offset("s", "app", 0)
        found = await client.query_offset("s", "app")
        client.abort()
    assert found == 0, found
