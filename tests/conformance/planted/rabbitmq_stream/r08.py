"""Keys of super streams are hashed as Latin-1: a key with other letters goes to another partition than with
all other clients, and messages of one key are in two places. Like nodefluent/node-sinek 40 and
karafka-rdkafka 468.
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.murmur3 import murmur3
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    def hash_of(self: SuperStreams, key: str) -> int:
        return murmur3(key.encode("latin-1", errors="replace"))

    SuperStreams.hash = hash_of  # type: ignore[method-assign]


async def witness() -> None:
    """Keys lead where the hash of their UTF-8 says."""
    keys = [f"stra\N{LATIN SMALL LETTER SHARP S}e-{number}" for number in range(20)]
    async with RabbitMQStream(memory=True) as broker:
        broker.create_super_stream("orders", [f"orders-{number}" for number in range(7)], list("0123456"))
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        deadline = client.runtime.clock.deadline(5)
        partitions = await client.super_streams.partitions("orders", deadline)
        found = [(await client.super_streams.targets("orders", "hash", key, deadline))[0] for key in keys]
        await client.close()
    assert found == [partitions[murmur3(key.encode()) % 7] for key in keys]
