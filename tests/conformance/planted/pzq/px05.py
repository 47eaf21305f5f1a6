"""The monitor's answer goes to the question that was asked last: of two questions at the same time the first
one never ends. Like multica-ai/multica 37 (one place for the pending request, which the next one overwrites).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer, Values
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    async def ask(self: Inquirer, timeout: float | None = None) -> Values:
        answered: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()
        self.waiting.add(answered)
        self.current = answered  # type: ignore[attr-defined]

        def on_message(parts: Parts) -> None:
            current: asyncio.Future[Parts] = self.current  # type: ignore[attr-defined]
            if not current.done():
                current.set_result(parts)

        socket = self.connector.connect(self.endpoint, self.kind, on_message)
        try:
            socket.send(*self.request())
            parts = await asyncio.wait_for(answered, timeout)
        except TimeoutError:
            raise ClientError("timeout", f"the monitor did not answer within {timeout} s") from None
        finally:
            self.waiting.discard(answered)
            socket.close()
        return self.read(parts)

    Inquirer.ask = ask  # type: ignore[method-assign]


async def witness() -> None:
    """Two questions at once have an answer each."""
    problems: list[str] = []
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)
        for answer in await asyncio.gather(client.ask(5), client.ask(5), return_exceptions=True):
            if isinstance(answer, ClientError):
                problems.append(answer.kind)
        await client.close()
    assert problems == [], problems
