"""Who unsubscribes while the connection is being made anew is subscribed all the same once it stands: nobody
wants the messages that it takes from the queue. Like RobotWebTools/rosbridge_suite 948 (a stale subscription
stays where it is ended during a resubscription).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def stop(self: Any) -> None:
        self._is_closing = True

    Subscription._stop = stop  # type: ignore[method-assign]


async def witness() -> None:
    """After an unsubscribe during an outage the messages stay in the queue."""

    async def take(delivery: Any) -> None:
        """Nothing."""

    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        subscription = await client.subscribe("q", take)
        broker.crash()
        await asyncio.sleep(2)
        await subscription.close()
        broker.restart()
        await asyncio.sleep(20)
        broker.publish("test", "q", b"one")
        await asyncio.sleep(1)
        waiting = len(broker.messages("test", "q"))
        client.abort()
    assert waiting == 1, waiting
