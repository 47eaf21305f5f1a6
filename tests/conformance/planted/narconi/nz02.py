"""A request over a kept HTTP connection that ends without an answer is sent again by itself, a POST too: a
message whose 201 was lost is stored twice, and the caller never hears of it. Like nahi/httpclient 142 and
softonic/axios-retry 66.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.narconi.faults import publish_201_lost

plain = HttpApi.request


def plant() -> None:
    """Install the defect."""

    async def request(self: Any, method: str, path: str, headers: Any = None, body: bytes = b"") -> Any:
        is_kept = any(one.is_open for one in self._idle)
        try:
            return await plain(self, method, path, headers, body)
        except ClientError as error:
            if error.kind != "connection" or not is_kept:
                raise
            return await plain(self, method, path, headers, body)  # the server had closed it in the meantime

    HttpApi.request = request  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The message is stored once."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.http.post("q", b"first", {})
        server.faults.add(publish_201_lost(first=1))
        with suppress(ClientError):
            await client.http.post("q", b"second", {})
        stored = [message.payload for message in server.messages("test", "q")]
        client.abort()
    assert stored == [b"first", b"second"], stored
