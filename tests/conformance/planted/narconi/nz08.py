"""A slash in the name of a queue is not escaped in its address: to delete the queue ``jobs/messages`` takes
a message out of the queue ``jobs``. Like spring-projects/spring-amqp 3489, bkjones/pyrabbit 14 and
mher/flower 112.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import quote

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Addresses, Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def escape(self: Any, name: str) -> str:
        if not name:
            raise ClientError("invalid", "names of projects and queues are not empty")
        return quote(name, safe="/:")

    Addresses.escape = escape  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """The other queue keeps its message."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("jobs")
        await client.http.post("jobs", b"x", {})
        with suppress(ClientError):  # no queue has such a name
            await client.http.delete("jobs/messages")
        left = len(server.messages("test", "jobs"))
        client.abort()
    assert left == 1, left
