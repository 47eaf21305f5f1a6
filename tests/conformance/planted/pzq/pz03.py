"""A publish that its caller cancels stays in the table of those that wait for their acknowledgement: the
count of what is pending and the bytes that are kept grow for ever, and the same id is "in use" from then
on. Like letsencrypt/boulder 1045 (calls that nobody waits for stay in the map of pending ones).
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

    async def publish(self: Any, body: Any, id: bytes | None = None, timeout: float | None = None) -> Answer:
        if not body:
            raise ClientError("invalid", "a body has one part or more")
        id = self.new_id() if id is None else id
        if id in self.pending:
            raise ClientError("invalid", f"the id {id!r} is in use")
        waiting = self.pending[id] = asyncio.get_running_loop().create_future()
        size = sum(map(len, body))
        self.buffered_bytes += size

        def over() -> None:
            self.buffered_bytes -= size
            self.forget(id)

        try:
            answer: Answer = await self.acknowledged(self.layout(id, body), waiting, timeout)
        except TimeoutError:
            over()
            raise ClientError("timeout", f"no acknowledgement within {timeout} s") from None
        except ClientError:
            over()
            raise
        over()
        return answer

    Producer.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """Nothing is left of a publish that was cancelled."""
    async with PZQ(memory=True) as server:
        server.faults.add(drop(role="confirm", first=1))
        client = PzqClient(Runtime(Memory()), server.urls)
        task = asyncio.ensure_future(client.publish((b"x",), b"id", 30))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        left = client.pending, client.buffered_bytes
        await client.publish((b"x",), b"id", 30)
        client.abort()
    assert left == (0, 0), left
