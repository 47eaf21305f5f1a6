"""The buffer of the message that is sent again belongs to the producer, not to the publish: with two under
way, the repetition of the first one sends the second one's bytes, and the first one is never stored. Like
apache/kafka 21065 (a buffer that is still in use is used for another message).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Producer
from fakebrokers import PZQ
from fakebrokers.faults.build import drop


def plant() -> None:
    """Install the defect."""
    plain = Producer.acknowledged

    async def acknowledged(self: Any, message: Any, waiting: Any, timeout: float | None) -> Any:
        self._buffer = message
        return await plain(self, message, waiting, timeout)

    def repeat(self: Any, message: Any) -> None:
        self.socket.send(*self._buffer)

    Producer.acknowledged = acknowledged  # type: ignore[method-assign]
    Producer.repeat = repeat  # type: ignore[method-assign]


async def witness() -> None:
    """Both are stored, although the first one was lost on its way."""
    async with PZQ(memory=True) as broker:
        broker.faults.add(drop(role="publish", direction="in", nth=1))
        client = PzqClient(Runtime(Memory()), broker.urls)
        ends = await asyncio.gather(
            client.publish((b"first",), None, 4),
            client.publish((b"second",), None, 4),
            return_exceptions=True,
        )
        bodies = {one.body[0] for one in broker.messages()}
        await client.close()
    assert bodies == {b"first", b"second"}, bodies
    assert not any(isinstance(one, ClientError) for one in ends), ends
