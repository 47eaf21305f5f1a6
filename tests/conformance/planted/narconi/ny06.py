"""With several publishes under way, an error is given to the one that was sent last, not to the oldest one
that waits: the caller of the refused message hears that the connection was lost, and another that its good
message was refused. Like nats-io/nats.net.v1 210 and MQTT.js 1974 (outcomes that reach the wrong caller, or
none).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.publisher import BODY_MAX, Publisher
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def refused(self: Any, error: ClientError) -> None:
        self.is_spent = True
        if self.pending:
            self.pending.pop()(error)
        else:
            self._on_error(error)

    Publisher.refused = refused  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The message that is too large is the one that is refused."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.publish("q", b"x", {})
        ends = await asyncio.gather(
            client.publish("q", bytes(BODY_MAX + 1), {}),
            client.publish("q", b"y", {}),
            return_exceptions=True,
        )
        await client.close(1)
    assert getattr(ends[0], "kind", "") == "refused", ends
