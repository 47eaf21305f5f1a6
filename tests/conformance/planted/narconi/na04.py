"""To acknowledge up to a delivery the client compares ack ids as text: with "9" it takes "10" for settled,
too, refuses to acknowledge that later, and the server keeps it. Like apache/hudi 18224 (sequence numbers
compared in lexicographic order).
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
        self.outstanding = [one for one in self.outstanding if one > ack_id]
        self.command({"ackToId": ack_id})

    Consumer.settle_to = settle_to  # type: ignore[method-assign]


async def witness() -> None:
    """What comes after the delivery still waits for its acknowledgement."""
    got: list[Any] = []

    async def take(delivery: Any) -> None:
        got.append(delivery)

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        for number in range(12):
            server.publish("test", "q", b"%d" % number)
        settings = Settings(endpoint=server.url.partition("//")[2], project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.subscribe("q", take, ack=True, limit=20)
        await asyncio.sleep(1)
        assert len(got) == 12, got
        got[8].source.settle_to(got[8].ack_id)
        for delivery in got[9:]:
            delivery.source.settle(delivery.ack_id)
        await asyncio.sleep(1)
        left = server.unacked("test", "q")
        client.abort()
    assert left == 0, left
