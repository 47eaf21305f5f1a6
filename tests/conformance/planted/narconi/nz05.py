"""The headers of a message that is posted over HTTP are gathered in one table for all posts: what an
earlier message had and a later one has not goes along with the later one. Like dan-online/bunnycdn-stream
59 (the request is copied, but its headers are the same object).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi, Metadata
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def post(
        self: Any,
        queue: str,
        body: bytes,
        headers: Mapping[str, Any],
        texts: dict[str, str] = {},  # noqa: B006
    ) -> None:
        self._runtime.part(Metadata)().check(headers)
        for name, value in headers.items():
            texts[name] = self.header_text(value)
        self.expect(await self.request("POST", self._addresses.path(queue, "messages"), texts, body), 201)

    HttpApi.post = post  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The second message has no header of the first."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.http.post("q", b"first", {"x-msg-x-tenant": "a", "x-msg-x-trace": "1"})
        await client.http.post("q", b"second", {"x-msg-x-tenant": "b"})
        await client.http.take("q")
        second = await client.http.take("q")
        client.abort()
    assert second is not None and "x-msg-x-trace" not in second.headers, second
