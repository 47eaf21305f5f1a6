"""What comes in one read with the server's acceptance of a WebSocket is thrown away: a consumer of a queue
with a backlog loses its first messages, now and then. Like netty/netty 1331, faye/faye-websocket-node 73
and zephyrproject-rtos/zephyr 89193.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.socket import Socket
from fakebrokers import Narconi
from fakebrokers.faults import coalesce


def plant() -> None:
    """Install the defect."""

    def data_received(self: Any, data: bytes) -> None:
        if self._is_open:
            self._frames(data)
        elif not self.opened.done():
            self._handshake(lambda: self._response.feed(data))

    Socket.data_received = data_received  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """All three messages of the backlog come."""
    came = []

    async def taken(delivery: Any) -> None:
        came.append(delivery.body)

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        for body in (b"1", b"2", b"3"):
            server.publish("test", "q", body)
        server.faults.add(coalesce(2, kind="WsAccept", direction="out"))
        client = made(server)
        await client.subscribe("q", taken, encoding="base64")
        await asyncio.sleep(1)
        client.abort()
    assert came == [b"1", b"2", b"3"], came
