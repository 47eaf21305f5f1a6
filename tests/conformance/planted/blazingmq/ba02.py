"""The correlation id of a post that has timed out is given to the next one at once: the late ACK of the
first is taken for that of the second. Like wolfSSL/wolfMQTT 613 and tchaloupka/vibe-mqtt 10 (a packet
identifier is used again before it is free).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.posts import Posts
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults import delay, drop

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    next_id, forget = Posts.next_id, Posts.forget

    def next_free(self: Any) -> int:
        free: list[int] = self.__dict__.setdefault("free_ids", [])
        while free:
            number = free.pop()
            if number not in self.pending:
                return number
        return next_id(self)

    def freed(self: Any, number: int) -> None:
        forget(self, number)
        self.__dict__.setdefault("free_ids", []).append(number)

    Posts.next_id = next_free  # type: ignore[method-assign]
    Posts.forget = freed  # type: ignore[method-assign]


async def witness() -> None:
    """A post whose PUT was lost is not acknowledged, whatever comes late."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)
        await client.queues.open("q", URI, frozenset({"write"}), {}, 5)
        broker.faults.add(delay(2.0, role="confirm", nth=1), drop(role="publish", nth=2))

        async def post(body: bytes) -> str:
            try:
                await client.posts.post("q", body, {}, zlib_wanted=False, wait=True, timeout=1.5)
            except ClientError as error:
                return error.kind
            return "acked"

        first = await post(b"a")
        second = await post(b"b")
        await asyncio.sleep(1)
        client.abort()
    assert (first, second) == ("timeout", "timeout"), (first, second)
