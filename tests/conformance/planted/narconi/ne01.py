"""A ping without a pong has no consequence but the next ping: a connection that is dead stays open for ever.
Like boostorg/beast 2284 (pings go out, and that nothing answers them is not noticed).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.socket import Socket
from fakebrokers import Narconi
from fakebrokers.faults import silent


def plant() -> None:
    """Install the defect."""

    def unanswered(self: Any) -> None:
        self._ping()

    Socket.unanswered = unanswered  # type: ignore[method-assign]


async def witness() -> None:
    """A server that falls silent is noticed by a consumer that pings."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("gold", "orders")
        told: list[str] = []
        runtime = Runtime(Memory(), on_session=lambda what, *_: told.append(what))
        endpoint = narconi.url.partition("//")[2]
        client = NarconiClient(runtime, Settings(endpoint=endpoint, project="gold", keepalive_s=5.0))

        async def take(delivery: Delivery) -> None:
            """Nothing comes."""

        await client.subscribe("orders", take)
        narconi.faults.add(silent(direction="in", nth=1, scope="run"))
        await asyncio.sleep(60)
        client.abort()
    assert told == ["connection_lost"], told
