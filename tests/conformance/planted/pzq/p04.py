"""Messages that wait for their acknowledgement while the client is closed are reported as surely not
stored, though they are: whoever sends them again has them twice. Like pulsar-client-node 78 and
apache/pulsar 12216.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def close(self: Producer) -> None:
        for waiting in self.pending.values():
            if not waiting.done():
                waiting.set_exception(ClientError("closed", "the client was closed", definite=True))
        self.socket.close()

    Producer.close = close  # type: ignore[method-assign]


async def witness() -> None:
    """Nobody knows what became of the message."""
    outcome = ""
    async with PZQ(memory=True) as broker:
        broker.faults.add(drop(kind="ProduceAck"))
        client = PzqClient(Runtime(Memory()), broker.urls)
        publishing = asyncio.ensure_future(client.publish((b"x",), None, 20))
        await asyncio.sleep(1)
        stored = len(broker.messages())
        await client.close()
        try:
            await publishing
        except ClientError as error:
            outcome = error.outcome
    assert (stored, outcome) == (1, "unknown"), (stored, outcome)
