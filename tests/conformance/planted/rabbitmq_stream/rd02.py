"""What has no confirm is published again a moment after the publisher is declared anew, and new messages do
not wait for it: their ids are higher, so the server takes the repeated ones for known, confirms them and
stores none. Like confluentinc/librdkafka 1092 (messages that are retried get behind others).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from fakebrokers import RabbitMQStream
from fakebrokers.faults import rst

RETRY_S = 0.1


def plant() -> None:
    """Install the defect."""

    def attach(self: Any, connection: Any, publisher_id: int, sequence: int | None) -> None:
        self.connection = connection
        self.publisher_id = publisher_id
        connection.publishers[publisher_id] = self
        if sequence is not None:
            self.next_id = max(self.next_id, sequence + 1)
        lost = list(self.pending.values())

        def retry() -> None:
            if self.connection is connection:
                self.write([one for one in lost if self.pending.get(one.publishing_id) is one])
                connection.owner.flush()

        if lost:
            asyncio.get_running_loop().call_later(RETRY_S, retry)

    Publisher.attach = attach  # type: ignore[method-assign]


async def witness() -> None:
    """A message that was lost with its connection is stored before it is confirmed."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5.0)
        for receipt in await client.publishing.publish("orders", [b"one"], name="shop"):
            await receipt.confirmed()
        broker.faults.add(rst(pass_frame=False, role="publish", nth=1))
        [second] = await client.publishing.publish("orders", [b"two"], name="shop", timeout=20.0)
        await asyncio.sleep(0.1)
        [third] = await client.publishing.publish("orders", [b"three"], name="shop", timeout=20.0)
        await second.confirmed()
        await third.confirmed()
        stored = [message.body for message in broker.messages("orders")]
        client.abort()
    assert stored == [b"one", b"two", b"three"], stored
