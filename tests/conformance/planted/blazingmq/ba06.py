"""Options that the broker has refused are kept all the same: after the next reconnect the client asks for
them, and the reader has others than those that were accepted last. Like apache/pulsar 7683 (a state is
updated before the request succeeds) and btravstack/amqp-contract 463 (a stale prefetch is applied again at
a reconnect).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import LIMITS, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import refuse_configure

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""

    async def configure(self: Any, name: str, options: Mapping[str, int], timeout: float) -> None:
        queue = self.find(name)
        if not queue.read:
            raise ClientError("invalid", "the queue is not open for read")
        deadline = self.client.runtime.clock.deadline(timeout)
        queue.options = {**LIMITS, **options}
        await self.usable_again(queue, timeout)
        await self.ask_configure(queue, queue.options, deadline - self.client.runtime.clock.now())

    Queues.configure = configure  # type: ignore[method-assign]


async def witness() -> None:
    """After a reconnect the reader has the options that were accepted last."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)
        await client.queues.open("q", URI, frozenset({"read"}), {"max_unconfirmed_messages": 1}, 5)
        broker.faults.add(refuse_configure(nth=1, scope="run"))
        try:
            await client.queues.configure("q", {"max_unconfirmed_messages": 50}, 5)
        except ClientError as error:
            assert error.kind == "refused", error
        else:
            raise AssertionError("it was not refused")
        broker.kill()
        await asyncio.sleep(10)
        for number in range(5):
            broker.publish(URI, b"%d" % number)
        await asyncio.sleep(1)
        queue = client.queues.find("q")
        out = len(queue.early)
        client.abort()
    assert out == 1, out
