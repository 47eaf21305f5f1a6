"""A close of the server with code 1000 counts as a good end of all that was sent: messages without a
confirm are reported as stored. Narconi closes with 1000 whatever has happened, after errors too. Like
knolleary/pubsubclient 885 (publish reports success although the connection is gone and the message with
it).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.publisher import Publisher
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi

NORMAL = 1000


def plant() -> None:
    """Install the defect."""

    def lost(self: Any, error: ClientError) -> None:
        outcome = None if error.code == NORMAL else error
        while self.pending:
            self.pending.popleft()(outcome)

    Publisher.lost = lost  # type: ignore[method-assign]


async def witness() -> None:
    """What follows a message that is refused is not reported as stored, unless it is."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("test", "orders")
        settings = Settings(endpoint=narconi.url.removeprefix("http://"), project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        bodies = [b"one", b"x" * 70_000, b"three"]
        calls = [client.publish("orders", body, {}) for body in bodies]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        stored = [message.payload for message in narconi.messages("test", "orders")]
        client.abort()
    claimed = [body for body, outcome in zip(bodies, outcomes, strict=True) if outcome is None]
    assert claimed == stored, (outcomes, len(stored))
