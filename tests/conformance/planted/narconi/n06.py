"""Only one ping is sent on a WebSocket: a connection that dies after the first pong is never noticed, and
the consumer is silent for ever. Like dart-nats 46 and netclaw 176 (half-open sockets that the client does
not notice).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.socket import Socket
from fakebrokers import Narconi
from fakebrokers.faults import silent


def plant() -> None:
    """Install the defect."""

    def ponged(self: Socket) -> None:
        barriers, self._barriers = self._barriers, []
        for barrier in barriers:
            if not barrier.done():
                barrier.set_result(None)
        if self._timer is not None:
            self._timer.cancel()

    Socket.ponged = ponged  # type: ignore[method-assign]


async def witness() -> None:
    """A connection that has become silent is reported as lost."""
    said: list[str] = []

    async def on_message(delivery: Delivery) -> None:
        """Nothing comes."""

    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", keepalive_s=1.0)
        client = NarconiClient(Runtime(Memory(), on_session=lambda what, *_: said.append(what)), settings)
        await client.subscribe("q", on_message)
        await asyncio.sleep(5)
        broker.faults.add(silent(on="begin"))
        await asyncio.sleep(30)
        client.abort()
    assert "connection_lost" in said, said
