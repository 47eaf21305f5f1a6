"""The time of a delivery goes through seconds in floating point: about half of the times that the
application gets are one microsecond too early. Like fprime-community/fpy 222 and apache/beam 40235, and
Inumedia/SlackAPI 12 (time stamps of messages that lose their precision).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""
    read = Consumer.read

    def in_seconds(self: Any, parts: tuple[bytes, ...]) -> Any:
        delivery = read(self, parts)
        if delivery.sent_us is None:
            return delivery
        sent_s = delivery.sent_us / 1e6
        whole_s = int(sent_s)
        return delivery._replace(sent_us=whole_s * 1_000_000 + int((sent_s - whole_s) * 1e6))

    Consumer.read = in_seconds  # type: ignore[method-assign]


async def witness() -> None:
    """Times arrive as they were sent."""
    got: list[int] = []

    async with PZQ(memory=True) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)

        async def take(delivery: Any) -> None:
            got.append(delivery.sent_us)
            await consumer.settle(delivery, True)

        consumer = client.subscribe(take)
        for number in range(40):
            await asyncio.sleep(0.010_007)
            pzq.publish(b"%d" % number)
        await asyncio.sleep(1)
        client.abort()
        frames: list[Any] = [record.frame for record in pzq.journal.select(role="deliver")]
    sent = [int(frame.sent) for frame in frames]
    assert got == sent, [(a, b) for a, b in zip(got, sent, strict=True) if a != b]
