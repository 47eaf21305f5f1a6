"""Messages without a body are left out of sub-entry batches: they are confirmed with the others, and not
stored. Like rabbitmq/rabbitmq-stream-java-client 544 (an empty body is sent as none at all).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import Compression


def plant() -> None:
    """Install the defect."""
    plain = Publisher.entry

    def entry(self: Any, bodies: Any, compression: Any) -> bytes:
        if compression is not None:
            bodies = [body for body in bodies if body] or bodies
        return plain(self, bodies, compression)

    Publisher.entry = entry  # type: ignore[method-assign]


async def witness() -> None:
    """What was confirmed is stored, the empty one too."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5.0)
        bodies = [b"tea", b"", b"milk"]
        for receipt in await client.publishing.publish("orders", bodies, compression=Compression.GZIP):
            await receipt.confirmed()
        stored = [message.body for message in broker.messages("orders")]
        client.abort()
    assert stored == bodies, stored
