"""A subscription that is being drained cannot be closed: the close waits until the drain has ended, and
that waits for acknowledgements which may never come. Like streadway/amqp 147 (the channel and the
connection are closed at once, and the latter hangs).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    plain_drain, plain_close = Subscription.drain, Subscription.close

    def ending(self: Any) -> asyncio.Lock:
        lock: asyncio.Lock = self.__dict__.setdefault("ending", asyncio.Lock())
        return lock

    async def drain(self: Any) -> None:
        async with ending(self):
            await plain_drain(self)

    async def close(self: Any) -> None:
        async with ending(self):
            await plain_close(self)

    Subscription.drain = drain  # type: ignore[method-assign]
    Subscription.close = close  # type: ignore[method-assign]


async def witness() -> None:
    """A client is closed while a subscription waits for an acknowledgement at its end."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("test", "orders")
        settings = Settings(endpoint=narconi.url.removeprefix("http://"), project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        narconi.publish("test", "orders", b"tea")

        async def deliver(delivery: Delivery) -> None:
            """It is not acknowledged."""

        subscription = await client.subscribe("orders", deliver, ack=True)
        await asyncio.sleep(1)
        draining = asyncio.ensure_future(subscription.drain())
        await asyncio.sleep(1)
        closing = asyncio.ensure_future(client.close(4.0))
        done, _ = await asyncio.wait({closing}, timeout=60)
        for task in (draining, closing):
            task.cancel()
            with suppress(asyncio.CancelledError, ClientError):
                await task
        client.abort()
    assert done, "the close did not end within 60 s"
