"""The id of a message that had no answer in time stays taken: to publish it again under the same id fails
as if it were still under way. Like vert-x3/vertx-mqtt 165 (a packet without a response is never removed
from the queue of those that wait, and blocks others).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""
    forget = Producer.forget

    def forget_answered(self: Any, id: bytes) -> None:
        waiting = self.pending.get(id)
        if waiting is not None and not waiting.cancelled():  # a late answer is to be recognised
            forget(self, id)

    Producer.forget = forget_answered  # type: ignore[method-assign]


async def witness() -> None:
    """A message that has timed out may be published again."""
    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        pzq.faults.add(drop(role="publish", first=2))

        async def publish() -> str:
            try:
                await client.publish((b"body",), b"order-1", 1.0)
            except ClientError as error:
                return error.kind
            return "acked"

        outcomes = [await publish(), await publish()]
        client.abort()
    assert outcomes == ["timeout", "acked"], outcomes
