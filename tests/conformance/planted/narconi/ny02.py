"""A request that is given up leaves its connection in the pool with the response still to come: the next
request on it gets that response for its own. Like redis/redis-py 2624 and 2665, and NoneGG/aredis 171.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.http import encode_request
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults.build import latency


def plant() -> None:
    """Install the defect."""

    async def exchange(self: Any, method: str, request: bytes) -> Any:
        self._reader = self.reader_for(method)
        self._answer = asyncio.get_running_loop().create_future()
        self.wire.write(request)
        try:
            response = await self._answer
        except ClientError:
            self.abort()
            raise
        self._answer = None
        if not self.is_reusable(response, self._reader.rest):
            self.abort()
        return response

    async def request(self: Any, method: str, path: str, headers: Any = None, body: bytes = b"") -> Any:
        data = encode_request(method, path, self._endpoint, list((headers or {}).items()), body)
        connection = await self._connection()
        self._busy.add(connection)
        try:
            return await connection.exchange(method, data)
        finally:
            self._busy.discard(connection)
            if connection.is_open:
                self._idle.append(connection)

    HttpConnection.exchange = exchange  # type: ignore[method-assign]
    HttpApi.request = request  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The request after one that was given up gets its own answer."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        server.publish("test", "q", b"x")
        server.faults.add(latency(1.0, kind="HttpDeliver", direction="out"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(client.http.take("q"), 0.5)
        await client.http.ensure("r")
        await client.close(1)
