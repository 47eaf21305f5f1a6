"""Each of the two attempts at a message gets its own time: with the repetition at half time a publish that
is never answered takes one and a half times what its caller wanted to wait. Like line/armeria 627 and
JustinBeckwith/retry-axios 138 (a time-out that begins anew with each attempt).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ
from fakebrokers.pzq.faults import frozen_daemon


def plant() -> None:
    """Install the defect."""

    async def acknowledged(
        self: Any, message: Parts, waiting: asyncio.Future[Answer], timeout: float | None
    ) -> Answer:
        self.socket.send(*message)
        if timeout is not None:
            await asyncio.wait({waiting}, timeout=timeout / 2)
            if not waiting.done():
                self.repeat(message)
        return await asyncio.wait_for(waiting, timeout)

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]


async def witness() -> None:
    """The time-out comes when it should."""
    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        server.faults.add(frozen_daemon(kind="Produce", first=1))
        begun = asyncio.get_running_loop().time()
        try:
            await client.publish((b"x",), timeout=4.0)
        except ClientError as error:
            assert error.kind == "timeout", error
        took_s = asyncio.get_running_loop().time() - begun
        client.abort()
    assert took_s < 4.5, took_s
