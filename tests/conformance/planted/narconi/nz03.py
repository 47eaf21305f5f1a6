"""A request over HTTP whose caller gives up leaves its connection in the pool: the next request goes out on
it, and takes the answer to the one that was given up for its own. Like scylladb/seastar 2768 and
lalinsky/dusty 114 (answers that cross on kept connections).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.http import encode_request
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults import latency


def plant() -> None:
    """Install the defect."""

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

    async def exchange(self: Any, method: str, request: bytes) -> Any:
        self._reader = self.reader_for(method)
        self._answer = asyncio.get_running_loop().create_future()
        self.wire.write(request)
        try:
            response = await self._answer
        except Exception:
            self.abort()
            raise
        self._answer = None
        if not self.is_reusable(response, self._reader.rest):
            self.abort()
        return response

    HttpApi.request = request  # type: ignore[method-assign]
    HttpConnection.exchange = exchange  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """Each request gets its own answer, also after one that took too long."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.http.post("q", b"x", {})
        server.faults.add(latency(1.0, kind="HttpDeliver", direction="out", first=1))
        with suppress(TimeoutError):
            await asyncio.wait_for(client.http.take("q"), 0.3)
        await client.http.ensure("q")
        delivery = await client.http.take("q")
        client.abort()
    assert delivery is None, delivery
