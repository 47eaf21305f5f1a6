"""Callbacks of all subscriptions run one after the other: a slow one keeps the messages of every other
queue waiting. Like paho.mqtt.golang 427 and nats.c 887.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    original = Subscription._deliver_message
    locks: dict[Runtime, asyncio.Lock] = {}

    async def deliver_message(self: Subscription, delivery: Delivery) -> None:
        async with locks.setdefault(self._runtime, asyncio.Lock()):
            await original(self, delivery)

    Subscription._deliver_message = deliver_message  # type: ignore[method-assign]


async def witness() -> None:
    """The other queue's message is delivered meanwhile."""
    got = []

    async def slow(delivery: Delivery) -> None:
        await asyncio.sleep(60)

    async def quick(delivery: Delivery) -> None:
        got.append(delivery.body)

    async with Narconi(memory=True) as broker:
        for name in ("slow", "quick"):
            broker.create_queue("test", name)
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.subscribe("slow", slow)
        await client.subscribe("quick", quick)
        broker.publish("test", "slow", b"x")
        await asyncio.sleep(1)
        broker.publish("test", "quick", b"y")
        await asyncio.sleep(5)
        client.abort()
    assert got == [b"y"], got
