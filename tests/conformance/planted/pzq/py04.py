"""A publish that was given up stays in the table of those that wait: the same id cannot be sent again, and
the table grows with each time-out. Like letsencrypt/boulder 1045 and camunda/camunda 8541 (not deleted from
the pending requests on time-out).
"""

from __future__ import annotations

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults.build import drop


def plant() -> None:
    """Install the defect."""

    def forget(self: Producer, id: bytes) -> None:
        waiting = self.pending.get(id)
        if waiting is not None and waiting.done() and not waiting.cancelled():
            del self.pending[id]

    Producer.forget = forget  # type: ignore[method-assign]


async def witness() -> None:
    """After a time-out the same id is sent again, and works."""
    kinds = []
    async with PZQ(memory=True) as broker:
        broker.faults.add(drop(role="confirm"))
        client = PzqClient(Runtime(Memory()), broker.urls)
        for _ in range(2):
            try:
                await client.publish((b"x",), b"order-7", 1)
                kinds.append("")
            except ClientError as error:
                kinds.append(error.kind)
            broker.faults.clear()
        left = client.pending
        await client.close()
    assert kinds == ["timeout", ""], kinds
    assert not left, left
