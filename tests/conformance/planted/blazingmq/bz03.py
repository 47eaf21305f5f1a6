"""The time-out of a post counts twice: once for the wait until the queue is open again after a loss, and
once more for the ACK. A post that was given 4 s may take nearly 8. Without a loss nobody notices. Like
googleapis/gax-java 561 (a time-out that holds for each attempt and not for the whole call).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.posts import Pending, Posts
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property
from fakebrokers.faults import drop

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    async def post(
        self: Any,
        target: str,
        body: bytes,
        properties: Mapping[str, Property],
        *,
        zlib_wanted: bool,
        wait: bool,
        timeout: float,
    ) -> dict[str, Any]:
        queue = self.client.queues.find(target)
        await queue.opened_again(timeout)
        if self.client.queues.find(target) is not queue:
            raise ClientError("closed", "the queue is closed", definite=True)
        number = self.next_id() if wait else 0
        self.send(queue, body, properties, zlib_wanted, number)
        if not wait:
            return {}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.pending[number] = Pending(queue.q_id, answer)
        found: dict[str, Any] = await self.acked(number, answer, timeout)
        return found

    Posts.post = post  # type: ignore[method-assign]


async def witness() -> None:
    """It ends when its time is over, not later."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        await client.connect(5)
        await client.queues.open("q", URI, frozenset({"write"}), {}, 5)
        server.faults.add(drop(kind="ACK"))
        server.refuse(2)
        server.kill()
        await asyncio.sleep(0.1)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        with suppress(ClientError):
            await client.posts.post("q", b"x", {}, zlib_wanted=False, wait=True, timeout=4)
        took = loop.time() - begun
        client.abort()
    assert took <= 4.2, took
