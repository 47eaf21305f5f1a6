"""The size of a filter value counts characters: where the values are not ASCII, a Publish frame is larger
than was reckoned. Like rabbitmq/rabbitmq-stream-java-client 1004 (lengths of strings are used where bytes
are meant).
"""

from __future__ import annotations

from msgspec import UNSET

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream import publisher, publishing
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import FilterValue
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    def filter_size(value: FilterValue) -> int:
        return 0 if value is UNSET else 2 + len(value or "")

    publisher.filter_size = filter_size
    publishing.filter_size = filter_size


async def witness() -> None:
    """Many messages with a filter value in Cyrillic are all stored: their frames fit."""
    async with RabbitMQStream(memory=True, frame_max=4096, faults={"faults": []}) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5.0)
        receipts = await client.publishing.publish(
            "orders", [b"tea"] * 300, timeout=5.0, filter_value="регион-север"
        )
        for receipt in receipts:
            await receipt.confirmed()
        client.abort()
