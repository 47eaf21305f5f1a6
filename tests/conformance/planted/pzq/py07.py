"""Whether a delivery has expired is computed from the first time that the message was sent, not from this
delivery: a message that was not acknowledged in time is dropped each time that it comes again, for ever.
Like apache/artemis 4627 and apache/pulsar 2590 (expiry and redelivery by the wrong time).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def is_expired(self: Any, delivery: Delivery) -> bool:
        sent = self.__dict__.setdefault("_sent", {})
        first = sent.setdefault(delivery.key, delivery.sent_us)
        return delivery._replace(sent_us=first).is_expired(self.runtime.clock.wall())

    Consumer.is_expired = is_expired  # type: ignore[method-assign]


async def witness() -> None:
    """What was not acknowledged in time is delivered again."""
    seen = []
    async with PZQ(memory=True, ack_timeout_s=1.0, reaper_interval_s=0.5) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def take(delivery: Delivery) -> None:
            seen.append(delivery.key)

        client.subscribe(take, filter_expired=True)
        broker.publish(b"x")
        await asyncio.sleep(6)
        await client.close()
    assert len(seen) > 1, seen
