"""Each attempt to send a message has the whole time-out for itself: a publish that is repeated takes longer
than its caller allowed. Like tulios/kafkajs 1749 (a send with a time-out of 300 ms takes very much longer).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    async def acknowledged(self: Any, message: Any, waiting: Any, timeout: float | None) -> Any:
        self.socket.send(*message)
        if timeout is not None:
            await asyncio.wait({waiting}, timeout=timeout / 2)
            if not waiting.done():
                self.repeat(message)
        return await asyncio.wait_for(waiting, timeout)

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]


async def witness() -> None:
    """No answer comes, and the publish is over when its time is."""
    loop = asyncio.get_running_loop()
    async with PZQ(memory=True, faults={"faults": []}) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)
        pzq.faults.add(drop(direction="out", role="confirm"))
        begun = loop.time()
        try:
            await client.publish((b"x",), timeout=4.0)
        except ClientError as error:
            assert error.kind == "timeout", error
        took = loop.time() - begun
        client.abort()
    assert took < 4.5, took
