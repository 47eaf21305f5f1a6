"""Ending a consumer closes its socket only: what had arrived is still handed to the application, after the
unsubscribe has returned. Like eclipse-paho/paho.mqtt.java 180 (callbacks after close).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def close(self: Consumer) -> None:
        self.socket.close()

    Consumer.close = close  # type: ignore[method-assign]


async def witness() -> None:
    """No callback begins after the end."""
    begun = []
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)

        async def take(delivery: Delivery) -> None:
            begun.append(delivery.body)
            await asyncio.sleep(1)

        consumer = client.subscribe(take)
        for body in (b"1", b"2", b"3"):
            broker.publish(body)
        await asyncio.sleep(0.5)
        consumer.close()
        await asyncio.sleep(5)
        await client.close()
    assert len(begun) == 1, begun
