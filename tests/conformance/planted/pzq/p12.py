"""When more than a hundred messages wait for their acknowledgement, further ones are dropped without a
word, as a full socket does: they are never sent, and time out. Like txZMQ 3 (a DEALER that loses messages)
and cppzmq 639.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ

MARK = 100


def plant() -> None:
    """Install the defect."""
    original = Producer.acknowledged

    async def acknowledged(
        self: Producer, message: Parts, waiting: asyncio.Future[Answer], timeout: float | None
    ) -> Answer:
        if len(self.pending) > MARK:
            return await asyncio.wait_for(waiting, timeout)
        return await original(self, message, waiting, timeout)

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]


async def witness() -> None:
    """All of many are stored."""
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)
        publishing = [client.publish((b"%d" % number,), None, 20) for number in range(150)]
        ends = await asyncio.gather(*publishing, return_exceptions=True)
        stored = {message.body for message in broker.messages()}
        await client.close()
    assert len(stored) == 150, len(stored)
    assert not [each for each in ends if isinstance(each, Exception)]
