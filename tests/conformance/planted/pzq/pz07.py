"""A message that is sent once more for want of an answer goes out under a new id: its acknowledgement is
taken for a foreign one, and the caller hears that the time was up although the message was stored. Like
pragmaticalabs/pragmatica 1237 and ag2ai/faststream 1603 (a retry that makes a new id).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ
from fakebrokers.pzq.faults import lose_acknowledgement


def plant() -> None:
    """Install the defect."""

    def repeat(self: Any, message: Parts) -> None:
        self.socket.send(*self.layout(self.new_id(), message[2:]))

    Producer.repeat = repeat  # type: ignore[method-assign]


async def witness() -> None:
    """The second acknowledgement counts."""
    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        server.faults.add(lose_acknowledgement(first=1))
        answer = await client.publish((b"x",), timeout=4.0)
        client.abort()
    assert answer.status == b"1", answer
