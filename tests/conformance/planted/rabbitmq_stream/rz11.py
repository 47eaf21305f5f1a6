"""Keys with characters beyond ASCII go to other partitions of a super stream than with all other clients:
only as many bytes of a key are hashed as it has characters. Like karafka/karafka-rdkafka 468 and
nodefluent/node-sinek 40.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.murmur3 import murmur3
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers import RabbitMQStream

KEYS = [f"Bestellung für Köln {number}" for number in range(20)]
PARTITIONS = [f"orders-{number}" for number in range(5)]


def plant() -> None:
    """Install the defect."""

    def hashed(self: Any, key: str) -> int:
        return murmur3(key.encode()[: len(key)])

    SuperStreams.hash = hashed  # type: ignore[method-assign]


async def witness() -> None:
    """The whole key is hashed."""
    async with RabbitMQStream(memory=True) as server:
        server.create_super_stream("orders", PARTITIONS, [str(number) for number in range(5)])
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        await client.connect(5)
        deadline = client.runtime.clock.deadline(5)
        found = [
            target
            for key in KEYS
            for target in await client.super_streams.targets("orders", "hash", key, deadline)
        ]
        client.abort()
    assert found == [PARTITIONS[murmur3(key.encode()) % 5] for key in KEYS], found
