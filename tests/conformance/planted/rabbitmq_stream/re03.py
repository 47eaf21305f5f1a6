"""Of the bytes that are left over at the end of a key, the hash takes in the last one only: keys of some
lengths go to another partition than with other clients. Like apache/pulsar 1795 (the end of a key is
mixed in wrongly, and messages with one key meet on different partitions).
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream import super_streams
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.murmur3 import murmur3 as plain
from fakebrokers import RabbitMQStream

KEYS = ["a", "ab", "abc", "abcd", "invoice", "customer-1", "customer-17"]
#: Where they go, by the hash with seed 104729 modulo 5.
PLACES = [4, 1, 0, 1, 2, 2, 1]


def plant() -> None:
    """Install the defect."""

    def murmur3(data: bytes) -> int:
        left = len(data) % 4
        if left > 1:
            data = data[:-left] + bytes(left - 1) + data[-1:]
        return plain(data)

    super_streams.murmur3 = murmur3


async def witness() -> None:
    """Each key leads to the partition that its hash has with all clients."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        names = [f"orders-{number}" for number in range(5)]
        broker.create_super_stream("orders", names, [str(number) for number in range(5)])
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]])
        await client.connect(5.0)
        deadline = client.runtime.clock.deadline(5.0)
        found = [await client.super_streams.targets("orders", "hash", key, deadline) for key in KEYS]
        client.abort()
    assert found == [[f"orders-{place}"] for place in PLACES], found
