"""A message whose publish the application has cancelled is sent once more all the same when half of the
time is over: the timer of the repetition outlives the call. Like chrysn/aiocoap 363 (scheduled
retransmissions go on after the request was cancelled).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    async def acknowledged(self: Any, message: Any, waiting: Any, timeout: float | None) -> Any:
        self.socket.send(*message)
        if timeout is None:
            return await waiting
        timer = asyncio.get_running_loop().call_later(timeout / 2, self.repeat, message)
        try:
            answer = await asyncio.wait_for(waiting, timeout)
        except Exception:
            timer.cancel()
            raise
        timer.cancel()
        return answer

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]


async def witness() -> None:
    """After the cancellation nothing is sent."""
    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        pzq.faults.add(drop(role="confirm"))
        publishing = asyncio.ensure_future(client.publish((b"body",), None, 10.0))
        await asyncio.sleep(1)
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)
        await asyncio.sleep(20)
        stored = len(pzq.messages())
        client.abort()
    assert stored == 1, stored
