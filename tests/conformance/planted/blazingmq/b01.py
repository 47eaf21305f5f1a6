"""Limits that were configured while a queue was open are forgotten by a reconnect: the consumer gets the
limits again with which the queue was opened. Like ruby-amqp 127, vertx-rabbitmq-client 219 and
smallrye-reactive-messaging 2084.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import LIMITS, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ


def plant() -> None:
    """Install the defect."""

    async def configure(self: Queues, name: str, options: Mapping[str, int], timeout: float) -> None:
        queue = self.find(name)
        if not queue.read:
            raise ClientError("invalid", "the queue is not open for read")
        await self.ask_configure(queue, {**LIMITS, **options}, timeout)

    Queues.configure = configure  # type: ignore[method-assign]


async def witness() -> None:
    """The limits after the reconnect are those that were set last."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        await client.queues.open("q", "bmq://bmq.test.mem.priority/q", frozenset({"read"}), {}, 5)
        await client.queues.configure("q", {"max_unconfirmed_messages": 3}, 5)
        broker.kill()
        await asyncio.sleep(10)
        said = [
            record.frame.stream_parameters.subscriptions[0].consumers[0].max_unconfirmed_messages
            for record in broker.journal.select(kind="configureStream")
        ]
        client.abort()
    assert said == [1024, 3, 3], said
