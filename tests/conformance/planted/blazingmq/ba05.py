"""To open a queue takes up to twice the time that the application gave: openQueue and configureStream have
the whole of it each. Like prisma-risk/tsoracle 238 (each step consumes the full budget, which doubles the
deadline).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import late_answer
from fakebrokers.faults import drop

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    open_queue = Queues.open

    async def open_in_steps(
        self: Any, name: str, uri: str, flags: frozenset[str], options: Any, timeout: float
    ) -> Any:
        step_s: dict[str, float] = self.__dict__.setdefault("step_s", {})
        step_s[uri] = timeout
        try:
            return await open_queue(self, name, uri, flags, options, timeout)
        finally:
            step_s.pop(uri, None)

    async def begin(self: Any, queue: Any, deadline: float) -> None:
        if queue.read:
            left_s = deadline - self.client.runtime.clock.now()
            timeout = self.__dict__.get("step_s", {}).get(queue.uri, left_s)
            await self.ask_configure(queue, queue.options, timeout)

    Queues.open = open_in_steps  # type: ignore[method-assign]
    Queues.begin = begin  # type: ignore[method-assign]


async def witness() -> None:
    """After its time the op is over."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)
        broker.faults.add(late_answer("openQueueResponse", 1.8), drop(kind="configureStreamResponse"))
        clock = asyncio.get_running_loop()
        begun = clock.time()
        try:
            await client.queues.open("q", URI, frozenset({"read"}), {}, 2.0)
        except ClientError as error:
            kind = error.kind
        else:
            kind = "none"
        took = clock.time() - begun
        client.abort()
    assert kind == "timeout", kind
    assert took < 2.4, took
