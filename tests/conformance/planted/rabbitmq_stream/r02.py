"""Offsets are stored lazily, and the last one is lost when the client is closed right after it was stored:
the application gets the same messages again after its next start. Like rabbitmq-stream-java-client 40 and
wvanbergen/kafka 50.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from fakebrokers import RabbitMQStream

FLUSH_S = 0.5


def plant() -> None:
    """Install the defect."""
    store, query = StreamClient.store_offset, StreamClient.query_offset
    waiting: dict[tuple[StreamClient, str, str], int] = {}

    async def flush(client: StreamClient, stream: str, reference: str, timeout: float | None = None) -> None:
        offset = waiting.pop((client, stream, reference), None)
        if offset is not None:
            await store(client, stream, reference, offset, timeout)

    async def store_offset(
        self: StreamClient, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        async def later() -> None:
            await asyncio.sleep(FLUSH_S)
            await flush(self, stream, reference)

        await self.links.control_link(self.runtime.clock.deadline(timeout))
        waiting[self, stream, reference] = offset
        self.runtime.tasks.spawn(later())

    async def query_offset(
        self: StreamClient, stream: str, reference: str, timeout: float | None = None
    ) -> int:
        await flush(self, stream, reference, timeout)
        return await query(self, stream, reference, timeout)

    StreamClient.store_offset = store_offset  # type: ignore[method-assign]
    StreamClient.query_offset = query_offset  # type: ignore[method-assign]


async def witness() -> None:
    """The broker has the offset after the client is closed."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        broker.publish("s", [b"one", b"two"])
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        await client.store_offset("s", "app", 1)
        await client.close()
        await asyncio.sleep(1)
        stored = [record.frame.offset for record in broker.journal.select(kind="StoreOffset")]
    assert stored == [1], stored
