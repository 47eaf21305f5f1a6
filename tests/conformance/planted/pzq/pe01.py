"""What is sent once more is the envelope alone: the body was handed over the first time, and is not there
any more. Like denoland/deno 32148 (a request that is tried again goes out without its body).
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
        self.socket.send(*message[:2])

    Producer.repeat = repeat  # type: ignore[method-assign]


async def witness() -> None:
    """A message that was lost on its way is stored all the same: it is sent again."""
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        pzq.faults.add(drop(role="publish", nth=1, scope="run"))
        client = PzqClient(Runtime(Memory()), pzq.urls)
        await client.publish((b"tea", b"black"), timeout=10.0)
        stored = [message.body for message in pzq.messages()]
        client.abort()
    assert stored == [(b"tea", b"black")], stored
