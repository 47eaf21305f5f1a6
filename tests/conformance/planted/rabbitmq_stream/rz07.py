"""While a stream has no leader for a moment (an election), a publisher that comes back takes that for the
end of the stream: it is closed, the application hears "target_closed", and messages that wait end as
unknown, where the next attempt would have worked. Like tulios/kafkajs 1008 and IBM/sarama 239 (an election
that is taken for an error that no retry helps against).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from fakebrokers import RabbitMQStream
from fakebrokers.faults import drop
from fakebrokers.rabbitmq_stream.codes import Code

GONE = (Code.STREAM_DOES_NOT_EXIST, Code.STREAM_NOT_AVAILABLE)


def plant() -> None:
    """Install the defect."""

    async def recover(self: Any, user: Any) -> None:
        backoff = self.new_backoff()
        try:
            while True:
                await self.links.until(lambda: self.links.control is not None)
                if user.is_closed:
                    return
                try:
                    await self.reattach(user)
                    return
                except ClientError as error:
                    if error.code in GONE:
                        self.close_user(user, error)
                        return
                await backoff.pause()
        finally:
            self.recovering.discard(user)
            self.client.progress()

    Recovery.recover = recover  # type: ignore[method-assign]


async def witness() -> None:
    """The message that waits is confirmed once there is a leader again."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]])
        await client.connect(5)
        receipts = await client.publishing.publish("s", [b"a"], name="p", timeout=30)
        await receipts[0].confirmed()
        server.faults.add(drop(kind="Publish", first=1))
        receipts = await client.publishing.publish("s", [b"b"], name="p", timeout=30)
        await asyncio.sleep(0.5)
        server.move_leader("s", None)
        await asyncio.sleep(3)
        server.move_leader("s", 1)
        await receipts[0].confirmed()
        client.abort()
