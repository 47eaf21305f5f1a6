"""White space at the ends of an id is stripped from answers: a message whose id ends with a line feed (or,
for random ids, with such a byte) is stored and never counts as acknowledged. Like kafka-python 815 (keys
that are bytes handled as text).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def find(self: Producer, answer: Answer) -> asyncio.Future[Answer] | None:
        return self.pending.get(answer.id.strip())

    Producer.find = find  # type: ignore[method-assign]


async def witness() -> None:
    """The message is acknowledged."""
    problem = ""
    async with PZQ(memory=True) as broker:
        client = PzqClient(Runtime(Memory()), broker.urls)
        try:
            await client.publish((b"x",), b"order 7\n", 5)
        except ClientError as error:
            problem = error.kind
        await client.close()
    assert problem == "", problem
