"""A time-out of 0 is taken for none: a publish that must not wait waits for ever when no acknowledgement
comes. Like tarantool/tntcxx 111 and rage-rb 128.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""
    original = Producer.acknowledged

    async def acknowledged(
        self: Producer, message: Parts, waiting: asyncio.Future[Answer], timeout: float | None
    ) -> Answer:
        return await original(self, message, waiting, timeout or None)

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]


async def witness() -> None:
    """It ends at once."""
    kind = "it still waits"
    async with PZQ(memory=True) as broker:
        broker.faults.add(drop(kind="ProduceAck"))
        client = PzqClient(Runtime(Memory()), broker.urls)
        publishing = asyncio.ensure_future(client.publish((b"x",), None, 0.0))
        await asyncio.wait([publishing], timeout=60)
        if publishing.done() and isinstance(error := publishing.exception(), ClientError):
            kind = error.kind
        await client.close()
    assert kind == "timeout", kind
