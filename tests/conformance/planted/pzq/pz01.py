"""A body of several parts loses its empty parts on the way to the application: what was sent as a, nothing,
b arrives as a, b, and parts are taken for others by their place. Bodies without empty parts are right. Like
zeromq/libzmq 872 (a frame of no bytes disappears) and zeromq/pyre 109 (content frames are dropped).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def body(self: Any, parts: Any, delimiter: int) -> Any:
        return tuple(part for part in parts[delimiter + 1 :] if part)

    Consumer.body = body  # type: ignore[method-assign]


async def witness() -> None:
    """All parts arrive, at their places."""
    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        got: list[Delivery] = []

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery)

        client.subscribe(deliver)
        await client.publish((b"a", b"", b"b"), timeout=5)
        await asyncio.sleep(1)
        client.abort()
    assert [one.body for one in got] == [(b"a", b"", b"b")], got
