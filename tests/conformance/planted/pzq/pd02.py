"""A message that is sent once more has only the first part of its body: what follows is lost, and what is
left of it is stored and acknowledged as the message. Like Azure/azure-c-shared-utility 154 (continuation
frames are dropped).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def repeat(self: Any, message: Any) -> None:
        id, delimiter, body, *_ = message
        self.socket.send(id, delimiter, body)

    Producer.repeat = repeat  # type: ignore[method-assign]


async def witness() -> None:
    """A body of several parts whose first sending was lost is stored whole."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        pzq.faults.add(drop(role="publish", nth=1, scope="run"))
        client = PzqClient(Runtime(Memory()), pzq.urls)
        await client.publish((b"head", b"body", b"tail"), timeout=4.0)
        stored = [message.body for message in pzq.messages()]
        client.abort()
    assert stored == [(b"head", b"body", b"tail")], stored
