"""The time-out of opening a queue holds for its first request only; the second one, which configures the
reader, has a fixed time of its own: the call takes far longer than the application allowed. Like
rabbitmq/rabbitmq-dotnet-client 1993 (a time-out that is not the user's).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import RESTORE_S, Queue, Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults.build import drop

A = "bmq://bmq.test.mem.priority/a"
B = "bmq://bmq.test.mem.priority/b"
C = "bmq://bmq.test.mem.priority/c"
BOTH = frozenset({"read", "write"})


def made(server: Any, reports: list[str] | None = None) -> BlazingClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return BlazingClient(runtime, server.url.partition("//")[2])


def take(client: BlazingClient, queue: Queue, seen: list[Any], pause_s: float = 0.0) -> None:
    """Subscribe."""

    async def callback(delivery: Delivery) -> None:
        seen.append(delivery)
        await asyncio.sleep(pause_s)

    queue.callback = callback
    client.deliveries.subscribe(queue)


def plant() -> None:
    """Install the defect."""

    async def begin(self: Any, queue: Queue, deadline: float) -> None:
        if queue.read:
            await self.ask_configure(queue, queue.options, RESTORE_S)

    Queues.begin = begin  # type: ignore[method-assign]


async def witness() -> None:
    """The call is over when its time is."""
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        broker.faults.add(drop(kind="configureStreamResponse", direction="out"))
        begun = client.runtime.clock.now()
        kind = ""
        try:
            await client.queues.open("a", A, BOTH, {}, 1)
        except ClientError as error:
            kind = error.kind
        took = client.runtime.clock.now() - begun
        client.abort()
    assert kind == "timeout", kind
    assert took < 2, took
