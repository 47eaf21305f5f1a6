"""An HTTP request that its caller gives up leaves its connection in the pool: the next request over it gets
the late response of that one, such as the message of another queue. Like long2ice/asyncmy 103 and
encode/httpx 1461 (a cancelled request does not close its connection).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.http import encode_request
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults import latency


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

    async def request(
        self: Any, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Any:
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
    HttpApi.request = request  # type: ignore[method-assign]


async def witness() -> None:
    """The answer to a request is its own."""
    async with Narconi(memory=True) as server:
        for queue in ("one", "two"):
            server.create_queue("test", queue)
            server.publish("test", queue, queue.encode())
        server.faults.add(latency(1.0, role="deliver", nth=1, scope="run"))
        settings = Settings(endpoint=server.url.partition("//")[2], project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        try:
            await asyncio.wait_for(client.http.take("one"), 0.5)
        except TimeoutError:
            pass
        else:
            raise AssertionError("the response was not late")
        taken = await client.http.take("two")
        client.abort()
    assert taken is not None
    assert taken.body == b"two", taken
