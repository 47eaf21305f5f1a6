"""Messages that the server refuses give their bytes of the publisher's window back to nobody: after enough
refusals (a full disk, say) the publisher waits for room for ever, though nothing is under way. Like
apache/pulsar 6360 and 16837 (a permit, and memory, that a failed send does not release).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.faults import reply
from fakebrokers.rabbitmq_stream.codes import Code


def plant() -> None:
    """Install the defect."""

    def settle(self: Any, publishing_id: int, error: ClientError | None) -> None:
        entry = self.pending.pop(publishing_id, None)
        if entry is not None:
            if error is None or error.kind != "refused":
                self.unconfirmed_bytes -= entry.size
            entry.done(error)
        elif self.connection is not None:
            word = "confirm" if error is None else "refusal"
            self.connection.owner.dropped(f"a {word} of message {publishing_id}, which waits for none,")

    Publisher.settle = settle  # type: ignore[method-assign]


async def witness() -> None:
    """After refusals there is as much room as before."""
    async with RabbitMQStream(memory=True) as server:
        server.create_stream("s")
        settings = Settings(unconfirmed_bytes=2000)
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]], settings)
        await client.connect(5)
        server.faults.add(reply(int(Code.INTERNAL_ERROR), role="publish", first=3))
        for _ in range(3):
            receipts = await client.publishing.publish("s", [bytes(1000)], timeout=5)
            try:
                await receipts[0].confirmed()
            except ClientError as error:
                assert error.kind == "refused", error
        receipts = await client.publishing.publish("s", [b"x"], timeout=5)
        await receipts[0].confirmed()
        left = client.buffered_bytes
        client.abort()
    assert left == 0, left
