"""An idle HTTP connection is used again although the server has ended it meanwhile: the next request fails.
Like haskell/HTTP 14 and nodejs/node 47130 (the pool hands out connections that the server has closed).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    connection, exchange = HttpApi._connection, HttpConnection.exchange

    async def pooled(self: Any) -> Any:
        return self._idle.pop() if self._idle else await connection(self)

    async def reset(self: Any, method: str, request: bytes) -> Any:
        if not self.is_open:
            raise ClientError("connection", "the connection was reset by its peer", definite=False)
        return await exchange(self, method, request)

    HttpApi._connection = pooled  # type: ignore[method-assign]
    HttpConnection.exchange = reset  # type: ignore[method-assign]


async def witness() -> None:
    """The server ends idle connections, and the next message is published all the same."""
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.http.post("q", b"one", {})
        broker.kill()
        await asyncio.sleep(5)
        await client.http.post("q", b"two", {})
        bodies = [message.payload for message in broker.messages("test", "q")]
        client.abort()
    assert bodies == [b"one", b"two"], bodies
