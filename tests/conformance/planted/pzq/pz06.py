"""A question to the monitor that gets no answer in time leaves its socket behind, connected for ever: an
application that asks a silent monitor every few seconds runs out of sockets, and the daemon has one more
connection for each. Like zeromq/libzmq 3914 (status sockets pile up) and MagicStack/asyncpg 464 (leaked
connections).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer, Values
from fakebrokers import PZQ
from fakebrokers.faults import silent


def plant() -> None:
    """Install the defect."""

    async def ask(self: Any, timeout: float | None = None) -> Values:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.add(answered)

        def on_message(parts: Any) -> None:
            if not answered.done():
                answered.set_result(parts)

        socket = self.connector.connect(self.endpoint, self.kind, on_message)
        socket.send(*self.request())
        try:
            parts = await asyncio.wait_for(answered, timeout)
        except TimeoutError:
            raise ClientError("timeout", f"the monitor did not answer within {timeout} s") from None
        finally:
            self.waiting.discard(answered)
        socket.close()
        values: Values = self.read(parts)
        return values

    Inquirer.ask = ask  # type: ignore[method-assign]


async def witness() -> None:
    """Three questions without an answer leave as many connections as there were before."""
    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        await client.ask(5)
        await asyncio.sleep(1)
        before = len(server.connections)
        server.faults.add(silent(on="accept"))
        for _ in range(3):
            with suppress(ClientError):
                await client.ask(1)
        await asyncio.sleep(1)
        after = len(server.connections)
        client.abort()
    assert after == before, (before, after)
