"""A close while the client comes back does not stop that: the connection that is made after it stays open,
and "reconnected" is reported. Like apache/pulsar 7589 (a consumer that is closed while it reconnects is
subscribed again).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ


def plant() -> None:
    """Install the defect."""
    plain = BlazingClient.reconnect

    async def dial(self: Any, timeout: float) -> None:
        link = self.runtime.part(Link)(self)
        await link.open(self.endpoint, timeout)
        self.link = link

    async def reconnect(self: Any) -> None:
        self.coming_back = asyncio.get_running_loop().create_task(plain(self))

    BlazingClient.dial = dial  # type: ignore[method-assign]
    BlazingClient.reconnect = reconnect  # type: ignore[method-assign]


async def witness() -> None:
    """A client that is closed in the pause before a reconnect makes no further connection."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        told: list[str] = []
        runtime = Runtime(Memory(), on_session=lambda what, *_: told.append(what))
        client = BlazingClient(runtime, broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        broker.kill()
        await asyncio.sleep(0.1)
        await client.close(5.0)
        await asyncio.sleep(30)
        left = list(broker.engine.connections)
    assert told == ["connected", "connection_lost"], told
    assert not left, left
