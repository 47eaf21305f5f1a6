"""An acknowledgement up to a delivery settles only that one in the client's own count of what is
outstanding: the server has all of them settled, and a graceful end of the subscription waits for the others
until its time is up. Like QuentinGruber/h1z1-server 2881 (a cumulative acknowledgement frees one entry of
the window).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Consumer
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def settle_to(self: Any, ack_id: str) -> None:
        if ack_id not in self.outstanding:
            raise ClientError("invalid", "this delivery waits for no acknowledgement")
        self.outstanding.remove(ack_id)
        self.command({"ackToId": ack_id})

    Consumer.settle_to = settle_to  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """With all of them acknowledged the graceful end is quick."""
    came = []

    async def taken(delivery: Any) -> None:
        came.append(delivery)

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        for _ in range(3):
            server.publish("test", "q", b"x")
        client = made(server)
        subscription = await client.subscribe("q", taken, ack=True)
        await asyncio.sleep(1)
        came[-1].source.settle_to(came[-1].ack_id)
        await asyncio.wait_for(subscription.drain(), 5)
        await subscription.close()
        client.abort()
    assert len(came) == 3, came
