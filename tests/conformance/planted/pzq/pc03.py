"""One lock guards the client: it is held while a message callback runs, and a publish takes it. Who
publishes in a callback waits for itself, and nobody can publish any more. Like eclipse-paho/paho.mqtt.java
310 and paho.mqtt.rust 212 (a publish in the message callback freezes the client).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer
from fakebrokers import PZQ


def lock_of(runtime: Any) -> asyncio.Lock:
    """The lock of a client."""
    if not hasattr(runtime, "guard"):
        runtime.guard = asyncio.Lock()
    found: asyncio.Lock = runtime.guard
    return found


def plant() -> None:
    """Install the defect."""
    hand_over, publish = Consumer.hand_over, PzqClient.publish

    async def guarded(self: Any, delivery: Any) -> None:
        async with lock_of(self.runtime):
            await hand_over(self, delivery)

    async def waiting(self: Any, *args: Any, **more: Any) -> Any:
        async with lock_of(self.runtime):
            sent = asyncio.ensure_future(publish(self, *args, **more))
            await asyncio.sleep(0)
        try:
            return await sent
        except asyncio.CancelledError:
            sent.cancel()
            raise

    Consumer.hand_over = guarded  # type: ignore[method-assign]
    PzqClient.publish = waiting  # type: ignore[method-assign]


async def witness() -> None:
    """A callback publishes an answer, and gets its acknowledgement."""
    answers: list[bytes] = []

    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)

        async def take(delivery: Any) -> None:
            if delivery.body[0] == b"question":
                answers.append((await client.publish((b"answer",), timeout=5.0)).status)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(take)
        pzq.publish(b"question")
        await asyncio.sleep(10)
        client.abort()
    assert answers == [b"1"], answers
