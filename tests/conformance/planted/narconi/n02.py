"""A kept connection that the server has closed meanwhile is taken for the next request, which then fails or
never ends. Like okhttp 220 and httpcore 44.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import HttpConnection
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def ended(self: HttpConnection, text: str) -> None:
        if self._answer is not None and not self._answer.done():
            self.is_open = False
            self._answer.set_exception(self.cut(text))

    HttpConnection._ended = ended  # type: ignore[method-assign]


async def witness() -> None:
    """The request after the end of the idle connection works."""
    problem = ""
    async with Narconi(memory=True) as broker:
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.http.ensure("q")
        broker.kill()
        await asyncio.sleep(1)
        try:
            await asyncio.wait_for(client.http.ensure("q"), 5)
        except (ClientError, TimeoutError) as error:
            problem = repr(error)
        client.abort()
    assert problem == "", problem
