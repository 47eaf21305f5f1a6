"""Opening a queue takes two requests, and each of them gets the whole time: an open with a time-out of 2 s
fails after nearly 4 s. Like temporalio/sdk-php 445 and evitaDB 719 (deadlines that are counted from the
wrong moment).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults import delay, drop


def plant() -> None:
    """Install the defect."""
    ask_open, begin = Queues.ask_open, Queues.begin
    given: dict[Queue, float] = {}

    async def new_ask_open(self: Queues, queue: Queue, timeout: float) -> None:
        given[queue] = timeout
        await ask_open(self, queue, timeout)

    async def new_begin(self: Queues, queue: Queue, deadline: float) -> None:
        timeout = given.pop(queue, None)
        await begin(self, queue, deadline if timeout is None else self.client.runtime.clock.deadline(timeout))

    Queues.ask_open = new_ask_open  # type: ignore[method-assign]
    Queues.begin = new_begin  # type: ignore[method-assign]


async def witness() -> None:
    """It fails when its time is over."""
    async with BlazingMQ(memory=True) as broker:
        broker.faults.add(delay(1.8, kind="openQueueResponse"), drop(kind="configureStreamResponse"))
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        begun = asyncio.get_running_loop().time()
        kind = ""
        try:
            await client.queues.open("q", "bmq://bmq.test.mem.priority/q", frozenset({"read"}), {}, 2)
        except ClientError as error:
            kind = error.kind
        took = asyncio.get_running_loop().time() - begun
        client.abort()
    assert kind == "timeout"
    assert took < 2.5, f"it took {took:.1f} s"
