"""The id of a publisher that was deleted is given to the next one at once: a late confirm for the old one
settles a message of the new one that is not stored. Like rabbitmq-server 10158 (late confirms of a closed
publisher whose id a new publisher shares).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop, hold


def plant() -> None:
    """Install the defect."""

    def free_publisher_id(self: Connection) -> int:
        found = next((number for number in range(256) if number not in self.publishers), None)
        if found is None:
            raise ClientError("invalid", "all 256 ids of this connection are in use")
        return found

    Connection.free_publisher_id = free_publisher_id  # type: ignore[method-assign]


async def witness() -> None:
    """A message that is lost on its way is not confirmed by what belongs to another publisher."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("old")
        broker.create_stream("new")
        broker.faults.add(hold(kind="PublishConfirm", nth=1, name="late"))
        broker.faults.add(drop(kind="Publish", nth=2, name="lost"))
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect()
        await client.publishing.publish("old", [b"stored"])
        await asyncio.sleep(0.1)
        await client.publishing.delete_publisher("old", None, 5)
        (receipt,) = await client.publishing.publish("new", [b"lost"], timeout=5)
        await asyncio.sleep(0.1)
        broker.faults.release("late")
        error = await receipt.outcome
        stored = len(broker.messages("new"))
        await client.close()
    assert stored == 0
    assert error is not None, "a message that the broker has never seen was confirmed"
