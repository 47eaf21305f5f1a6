"""Each request over HTTP opens a connection of its own, and none of them is closed: after many requests
there are no file descriptors left. Like cppzmq 639 and reconnecting-websocket 170.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.http import Response, encode_request
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def send_request(
        self: HttpApi, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        request = encode_request(method, path, self._endpoint, list((headers or {}).items()), body)
        connection = await self._connection()
        self._busy.add(connection)
        return await connection.exchange(method, request)

    HttpApi.request = send_request  # type: ignore[method-assign]


async def witness() -> None:
    """One request after the other needs few connections."""
    async with Narconi(memory=True) as broker:
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        for _ in range(20):
            await client.http.ensure("q")
        count = len(broker.connections)
        client.abort()
    assert count <= 2, count
