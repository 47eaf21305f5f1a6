"""An answer ends the oldest message that waits, whatever id it has. Like nens/asyncio-rpc 3 (answers are
taken in the order of the questions).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import delay
from fakebrokers.pzq.faults import refuse_message


def plant() -> None:
    """Install the defect."""

    def find(self: Any, answer: Any) -> Any:
        return next((each for each in self.pending.values() if not each.done()), None)

    Producer.find = find  # type: ignore[method-assign]


async def witness() -> None:
    """The first of two messages is stored and its answer is late; the second one is refused."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        pzq.faults.add(delay(2.0, role="confirm", nth=1, scope="run"), refuse_message(nth=2, scope="run"))
        client = PzqClient(Runtime(Memory()), pzq.urls)

        async def outcome(body: bytes) -> str:
            try:
                await client.publish((body,), timeout=20.0)
            except ClientError as error:
                return error.kind
            return "stored"

        found = await asyncio.gather(outcome(b"tea"), outcome(b"milk"))
        client.abort()
    assert found == ["stored", "refused"], found
