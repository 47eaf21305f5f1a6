"""The socket of a question that the monitor did not answer in time stays open: each such question leaves
one more connection behind. Like zeromq/cppzmq 639 (descriptors of sockets without a response pile up) and
seanmonstar/reqwest 342 (the connection stays open after a time-out).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer
from fakebrokers import PZQ
from fakebrokers.pzq.faults import silent_monitor


def plant() -> None:
    """Install the defect."""

    async def ask(self: Any, timeout: float | None = None) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.add(answered)

        def on_message(parts: Any) -> None:
            if not answered.done():
                answered.set_result(parts)

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
    """Questions leave no connections behind."""
    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        await client.ask(1.0)
        await asyncio.sleep(0.5)
        before = len(pzq.connections)
        pzq.faults.add(silent_monitor())
        for _ in range(5):
            try:
                await client.ask(1.0)
            except ClientError as error:
                assert error.kind == "timeout", error
        await asyncio.sleep(0.5)
        after = len(pzq.connections)
        client.abort()
    assert after == before, (before, after)
