"""A subscription that is made anew after a loss asks without its limit: an application that wanted one
message at a time gets as many as the server's default allows. Like vert-x3/vertx-rabbitmq-client 219 and
smallrye/smallrye-reactive-messaging 2084 (the prefetch is forgotten at a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def reopen(self: Any) -> None:
        encoding = self._query.get("encoding")
        self._query = {
            **({"ack": ""} if self._ack else {}),
            **({} if encoding is None else {"encoding": encoding}),
        }
        self._renew()
        await self._websockets.open(self.socket)

    Subscription.reopen = reopen  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """After a reconnect, too, no more than one message is out."""

    async def keep(delivery: Any) -> None:
        """It is never acknowledged."""

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        for number in range(5):
            server.publish("test", "q", b"%d" % number)
        client = made(server, auto_reconnect=True)
        await client.subscribe("q", keep, ack=True, limit=1)
        await asyncio.sleep(0.1)
        server.kill()
        await asyncio.sleep(5)
        out = server.unacked("test", "q")
        client.abort()
    assert out == 1, out
