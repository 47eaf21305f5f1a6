"""The id of a publish that was cancelled stays in use: trying again under the same id is refused, and the
bookkeeping grows. Near to redis-py 2624 and asyncmy 156 (what cancelled requests leave behind).
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
    original = Producer.publish

    async def publish(
        self: Producer, body: Parts, id: bytes | None = None, timeout: float | None = None
    ) -> Answer:
        id = self.new_id() if id is None else id
        try:
            return await original(self, body, id, timeout)
        except asyncio.CancelledError:
            self.pending[id] = asyncio.get_running_loop().create_future()
            raise

    Producer.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """The second attempt works."""
    problem = ""
    async with PZQ(memory=True) as broker:
        broker.faults.add(drop(kind="ProduceAck", nth=1))
        client = PzqClient(Runtime(Memory()), broker.urls)
        first = asyncio.ensure_future(client.publish((b"x",), b"order 7", 20))
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.sleep(1)
        try:
            await client.publish((b"x",), b"order 7", 5)
        except ClientError as error:
            problem = error.text
        client.abort()
    assert problem == "", problem
