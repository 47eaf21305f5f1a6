"""A subscription comes back once: the task that did it is still remembered at the second loss, and nothing
is begun. Like mqttjs/MQTT.js 749 (the subscriber hangs after the broker was restarted, and gets nothing
until the process is started anew).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def lost(self: Any, error: Any) -> None:
        self.core.lost()
        if error is not None:
            self._runtime.callbacks.report("connection_lost", error.text, error.code)
            if self._reconnecting is None:
                self._reconnecting = self._websockets.recover(self.reopen)

    Subscription.lost = lost  # type: ignore[method-assign]


async def witness() -> None:
    """A consumer whose connection was lost twice gets what is published after that."""
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("gold", "orders")
        settings = Settings(endpoint=narconi.url.partition("//")[2], project="gold", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        came: list[bytes] = []

        async def take(delivery: Delivery) -> None:
            came.append(delivery.body)

        await client.subscribe("orders", take)
        for _ in range(2):
            narconi.kill()
            await asyncio.sleep(20)
        narconi.publish("gold", "orders", b"tea")
        await asyncio.sleep(20)
        client.abort()
    assert came == [b"tea"], came
