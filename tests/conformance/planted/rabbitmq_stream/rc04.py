"""Publishers are found by their id in one table of the whole client, but an id counts for its connection
only: with streams on two nodes the confirms of one publisher go to another. Like mbroadst/qamqp 23
(consumers with the same number are taken for each other).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    attach = Publisher.attach

    def numbered(client: Any) -> dict[int, Any]:
        if not hasattr(client, "publishers_by_id"):
            client.publishers_by_id = {}
        found: dict[int, Any] = client.publishers_by_id
        return found

    def attached(self: Any, connection: Any, publisher_id: int, sequence: int | None) -> None:
        numbered(connection.owner.client)[publisher_id] = self
        attach(self, connection, publisher_id, sequence)

    def find_publisher(self: Any, publisher_id: int) -> Any:
        return numbered(self.owner.client).get(publisher_id)

    Publisher.attach = attached  # type: ignore[method-assign]
    Connection.find_publisher = find_publisher  # type: ignore[method-assign]


async def witness() -> None:
    """Messages to streams on two nodes are confirmed, each for itself."""
    async with RabbitMQStream(memory=True, nodes=2) as broker:
        broker.create_stream("a")
        broker.create_stream("b")
        broker.move_leader("b", 2)
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5.0)
        for stream in ("a", "b", "a", "b"):
            (receipt,) = await client.publishing.publish(stream, [b"x"], timeout=5.0)
            await receipt.confirmed()
        client.abort()
