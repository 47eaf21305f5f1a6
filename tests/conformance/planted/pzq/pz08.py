"""The body of a delivery is taken from behind its last empty part, not behind the first one after the
times: of a body that has an empty part only what follows that part reaches the application. Like
zeromq/pyre 109 (of a message with several parts only one arrives).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def delimiter(self: Any, parts: Parts) -> int | None:
        if b"" in parts[2:4]:
            return None
        found = [at for at in range(4, len(parts) - 1) if not parts[at]]  # a body has one part at least
        return found[-1] if found else None

    Consumer.delimiter = delimiter  # type: ignore[method-assign]


async def witness() -> None:
    """All parts come."""
    came = []

    async def taken(delivery: Any) -> None:
        came.append(delivery.body)
        await consumer.settle(delivery, True)

    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        consumer = client.subscribe(taken)
        server.publish(b"head", b"", b"tail")
        await asyncio.sleep(1)
        client.abort()
    assert came == [(b"head", b"", b"tail")], came
