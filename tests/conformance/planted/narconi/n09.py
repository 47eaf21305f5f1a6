"""The connection of a request that was cancelled is used again before its response has come: the next
request gets the response of the cancelled one. Like redis-py 2624, redis-py 2665 and aredis 52.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.http import Response, encode_request
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults import hold


def plant() -> None:
    """Install the defect."""

    async def exchange(self: HttpConnection, method: str, request: bytes) -> Response:
        assert self.wire is not None
        self._reader = self.reader_for(method)
        self._answer = asyncio.get_running_loop().create_future()
        self.wire.write(request)
        try:
            response = await self._answer
        except asyncio.CancelledError:
            raise
        except BaseException:
            self.abort()
            raise
        self._answer = None
        if not self.is_reusable(response, self._reader.rest):
            self.abort()
        return response

    async def send_request(
        self: HttpApi, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        request = encode_request(method, path, self._endpoint, list((headers or {}).items()), body)
        connection = await self._connection()
        self._busy.add(connection)
        try:
            return await connection.exchange(method, request)
        finally:
            self._busy.discard(connection)
            if connection.is_open:
                self._idle.append(connection)

    HttpConnection.exchange = exchange  # type: ignore[method-assign]
    HttpApi.request = send_request  # type: ignore[method-assign]


async def witness() -> None:
    """The second request gets its own message."""
    async with Narconi(memory=True) as broker:
        broker.publish("test", "first", b"one")
        broker.publish("test", "second", b"two")
        broker.faults.add(hold(behind=True, for_s=2.0, kind="HttpDeliver", nth=1))
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        cancelled = asyncio.ensure_future(client.http.take("first"))
        await asyncio.sleep(1)
        cancelled.cancel()
        await asyncio.sleep(0.1)
        delivery = await asyncio.wait_for(client.http.take("second"), 10)
        client.abort()
    assert delivery is not None
    assert delivery.body == b"two", delivery.body
