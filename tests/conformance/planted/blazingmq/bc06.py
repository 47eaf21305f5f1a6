"""After a reconnect a queue has the options with which it was opened, not those that it was configured with
since: the limit of unconfirmed messages is the old one. Like ruby-amqp/amqp 188 (the prefetch that was set
later is gone after a reconnect) and smallrye/smallrye-reactive-messaging 2084.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""
    configure = Queues.configure

    async def forgetful(self: Any, name: str, options: Any, timeout: float) -> None:
        queue = self.find(name)
        opened_with = queue.options
        await configure(self, name, options, timeout)
        queue.options = opened_with

    Queues.configure = forgetful  # type: ignore[method-assign]


async def witness() -> None:
    """A limit that was set after the opening holds after a reconnect, too."""
    got: list[bytes] = []
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5.0)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5.0)

        async def take(delivery: Any) -> None:
            got.append(delivery.payload)

        queue.callback = take
        client.deliveries.subscribe(queue)
        await client.queues.configure("q", {"max_unconfirmed_messages": 1}, 5.0)
        broker.kill()
        await asyncio.sleep(20)
        for number in range(3):
            broker.publish(URI, b"%d" % number)
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"0"], got
