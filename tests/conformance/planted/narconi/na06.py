"""After a reconnect no more pings are sent: a timer counts as started for a queue once it was, though it
has ended with the first connection. A second loss without a FIN is never noticed. Like
denis-sokolov/oncilla 89 (the pings do not start again with the connection).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.websockets import WebSockets
from fakebrokers import Narconi
from fakebrokers.faults import half_open


def plant() -> None:
    """Install the defect."""
    make = WebSockets.socket

    def socket(
        self: Any,
        queue: str,
        protocol: str,
        query: Mapping[str, str],
        on_message: Callable[[Any], None],
        on_lost: Callable[[ClientError | None], None],
    ) -> Any:
        made = make(self, queue, protocol, query, on_message, on_lost)
        pinging: set[tuple[str, str]] = self.__dict__.setdefault("pinging", set())
        if (queue, protocol) in pinging:
            made._keepalive_s = None
        pinging.add((queue, protocol))
        return made

    WebSockets.socket = socket  # type: ignore[method-assign]


async def witness() -> None:
    """The client notices that the second connection is dead, too."""
    got: list[bytes] = []

    async def take(delivery: Any) -> None:
        got.append(delivery.body)

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        settings = Settings(
            endpoint=server.url.partition("//")[2], project="test", keepalive_s=2.0, auto_reconnect=True
        )
        client = NarconiClient(Runtime(Memory()), settings)
        await client.subscribe("q", take)
        await asyncio.sleep(1)
        server.kill()
        await asyncio.sleep(10)
        server.faults.add(half_open(role="deliver", nth=1, pass_frame=False, scope="run"))
        server.publish("test", "q", b"lost")
        await asyncio.sleep(60)
        server.publish("test", "q", b"next")
        await asyncio.sleep(5)
        client.abort()
    assert got == [b"next"], got
