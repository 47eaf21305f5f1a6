"""A publish that was given up, by its time-out or by its caller, stays among those that wait: its id cannot
be used again, and what it takes is never given back. Like camunda/camunda 8541 and elasticio/amqp-rpc 19.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.pzq.faults import lose_acknowledgement


def plant() -> None:
    """Install the defect."""

    def forget(self: Producer, id: bytes) -> None:
        waiting = self.pending.get(id)
        if waiting is not None and not waiting.cancelled():
            del self.pending[id]

    Producer.forget = forget  # type: ignore[method-assign]


async def witness() -> None:
    """After a time-out the same message can be published again."""
    problem = ""
    async with PZQ(memory=True) as broker:
        broker.faults.add(lose_acknowledgement(first=2))
        client = PzqClient(Runtime(Memory()), broker.urls)
        with suppress(ClientError):
            await client.publish((b"x",), b"order-7", 2)
        await asyncio.sleep(1)
        try:
            await client.publish((b"x",), b"order-7", 2)
        except ClientError as error:
            problem = f"{error.kind}: {error.text}"
        pending = client.pending
        await client.close()
    assert problem == "" and pending == 0, (problem, pending)
