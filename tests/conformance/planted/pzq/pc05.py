"""Closing one consumer ends what dispatches the messages of all: the others of the client stay connected,
take deliveries in, and hand over none. Like apache/pulsar 12281 (what one closed consumer does breaks the
other consumers of the same client).
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

    def close(self: Any) -> None:
        for feed in tuple(self.runtime.feeds):
            feed.abort()
        self.socket.close()

    Consumer.close = close  # type: ignore[method-assign]


async def witness() -> None:
    """One consumer is closed, and the other gets all that comes."""
    got: list[bytes] = []

    async with PZQ(memory=True, ack_timeout_s=2.0, reaper_interval_s=0.5) as pzq:
        client = PzqClient(Runtime(Memory()), pzq.urls)

        async def ignore(delivery: Any) -> None:
            await first.settle(delivery, True)

        async def take(delivery: Any) -> None:
            got.append(delivery.body[0])
            await second.settle(delivery, True)

        first = client.subscribe(ignore)
        second = client.subscribe(take)
        await asyncio.sleep(1)
        first.close()
        await asyncio.sleep(1)
        for number in range(4):
            pzq.publish(b"%d" % number)
        await asyncio.sleep(20)
        client.abort()
    assert sorted(got) == [b"0", b"1", b"2", b"3"], got
