"""Questions to the monitor share one place for the answer: of two that are asked at the same time one never
gets its own. Like nats-io/nats.net.v1 210 and rolftimmermans/zeromq-ng 44 (replies of concurrent requests).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    async def ask(self: Any, timeout: float | None = None) -> Any:
        answered = self._answered = asyncio.get_running_loop().create_future()
        self.waiting.add(answered)

        def on_message(parts: Any) -> None:
            if not self._answered.done():
                self._answered.set_result(parts)

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
    """Both are answered."""
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)
        ends = await asyncio.gather(client.ask(3), client.ask(3), return_exceptions=True)
        await client.close()
    assert not any(isinstance(one, ClientError) for one in ends), ends
