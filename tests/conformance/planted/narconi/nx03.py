"""An idle HTTP connection that the server has ended meanwhile is used for the next request all the same,
which gets no answer. Like haskell/HTTP 14 and nodejs/node 47130 (stale connections in the pool).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection, reach
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    async def connection(self: HttpApi) -> HttpConnection:
        if self._idle:
            return self._idle.pop()
        new = self._runtime.part(HttpConnection)(self._runtime)
        await reach(self._runtime, self._endpoint, new)
        return new

    HttpApi._connection = connection  # type: ignore[method-assign]


async def witness() -> None:
    """A request after the end of the idle connection works."""
    problem = ""
    async with Narconi(memory=True) as broker:
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.http.ensure("orders")
        broker.kill()
        await asyncio.sleep(1)
        try:
            await asyncio.wait_for(client.http.post("orders", b"x", {}), 5)
        except ClientError as error:
            problem = error.kind
        except TimeoutError:
            problem = "no answer"
        client.abort()
    assert problem == "", problem
