"""A publish with a time-out of 0 waits for its acknowledgement without any limit, where it should give up
at once: 0 is taken for no time-out. Like centrifugal/centrifuge-dart 156 and datastax/astra-db-java 29.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    async def acknowledged(self: Any, message: Any, waiting: Any, timeout: float | None) -> Answer:
        self.socket.send(*message)
        if timeout:
            await asyncio.wait({waiting}, timeout=timeout / 2)
            if not waiting.done():
                self.repeat(message)
            timeout /= 2
        answer: Answer = await asyncio.wait_for(waiting, timeout or None)
        return answer

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]


async def witness() -> None:
    """It ends at once, with a time-out."""
    async with PZQ(memory=True) as server:
        server.faults.add(drop(role="confirm"))
        client = PzqClient(Runtime(Memory()), server.urls)
        try:
            await asyncio.wait_for(client.publish((b"x",), timeout=0), 5)
        except ClientError as error:
            assert error.kind == "timeout", error
        client.abort()
