"""The partitions of super streams are kept once for all of them: a message for a second super stream lands
in a partition of the first one. Like allegro/hermes 446 (the name of the topic is lost, and what was meant
for one ends at another).
"""

from __future__ import annotations

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    original = SuperStreams.hashed

    async def hashed(self: SuperStreams, super_stream: str, key: str, deadline: float) -> list[str]:
        first = next(iter(self._hashed), super_stream)
        return await original(self, first, key, deadline)

    SuperStreams.hashed = hashed  # type: ignore[method-assign]


async def witness() -> None:
    """Each key leads to a partition of its own super stream."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_super_stream("orders", ["orders-0", "orders-1", "orders-2"], ["0", "1", "2"])
        broker.create_super_stream("bills", ["bills-0", "bills-1", "bills-2"], ["0", "1", "2"])
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        deadline = client.runtime.clock.deadline(5)
        found = [
            (await client.super_streams.targets(name, "hash", "customer-1", deadline))[0]
            for name in ("orders", "bills")
        ]
        await client.close()
    assert found[0].startswith("orders") and found[1].startswith("bills"), found
