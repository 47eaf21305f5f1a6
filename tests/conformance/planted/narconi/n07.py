"""A consumer that is ended while it reconnects comes back all the same: nobody reads what the server sends
to it. Like zotero-api-node 7 and rosbridge_suite 948.
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

    def stop(self: Subscription) -> None:
        self._is_closing = True

    Subscription._stop = stop  # type: ignore[method-assign]


async def witness() -> None:
    """Nobody takes the message that is published afterwards."""

    async def on_message(delivery: Delivery) -> None:
        """Nothing is expected."""

    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        subscription = await client.subscribe("q", on_message)
        broker.crash()
        await asyncio.sleep(0.1)
        await subscription.close()
        broker.restart()
        await asyncio.sleep(20)
        broker.publish("test", "q", b"x")
        await asyncio.sleep(1)
        left = len(broker.messages("test", "q"))
        client.abort()
    assert left == 1, "somebody has taken the message"
