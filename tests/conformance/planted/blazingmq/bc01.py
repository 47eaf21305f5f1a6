"""Confirms are collected for a tenth of a second and sent together, and a close does not send those that are
waiting: the messages come again to somebody else. Like fsprojects/pulsar-client-dotnet 199 and
nats-io/stan.go 353 (acknowledgements that are still buffered are lost when the consumer is closed).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import Confirm

TOGETHER_S = 0.1
URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    def confirm(self: Any, delivery: Any) -> None:
        link, queue = self.client.usable(), delivery.queue
        if self.client.queues.numbered(queue.q_id) is not queue:
            raise ClientError("closed", "the queue is closed", definite=True)
        if not getattr(self, "collected", None):
            self.collected = []
            asyncio.get_running_loop().call_later(TOGETHER_S, flush, self, link)
        self.collected.append(self.message(delivery))

    def flush(self: Any, link: Any) -> None:
        collected, self.collected = self.collected, []
        if link.state == "open" and not self.client.runtime.is_closed:
            link.send(Confirm(tuple(collected)))

    Deliveries.confirm = confirm  # type: ignore[method-assign]


async def witness() -> None:
    """What was confirmed before a close is confirmed."""
    async with BlazingMQ(memory=True) as broker:
        broker.publish(URI, b"one")
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5.0)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5.0)
        confirmed = asyncio.Event()

        async def take(delivery: Any) -> None:
            client.deliveries.confirm(delivery)
            confirmed.set()

        queue.callback = take
        client.deliveries.subscribe(queue)
        await confirmed.wait()
        await client.close(5.0)
        await asyncio.sleep(1)
        left = [message.content.payload for message in broker.messages(URI)]
    assert not left, left
