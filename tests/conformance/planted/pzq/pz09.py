"""The bytes of a message whose acknowledgement never came are still counted as buffered when its caller has
long got the time-out: after an outage the number stays up for ever. Like apache/pulsar 11761 and 16837
(memory usage that a send time-out does not release).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Parts
from fakebrokers import PZQ
from fakebrokers.pzq.faults import frozen_daemon

plain = Producer.publish


def plant() -> None:
    """Install the defect."""

    async def publish(
        self: Any, body: Parts, id: bytes | None = None, timeout: float | None = None
    ) -> Answer:
        if not body:
            raise ClientError("invalid", "a body has one part or more")
        id = self.new_id() if id is None else id
        if id in self.pending:
            raise ClientError("invalid", f"the id {id!r} is in use")
        waiting = self.pending[id] = asyncio.get_running_loop().create_future()
        size = sum(map(len, body))
        self.buffered_bytes += size
        try:
            answer: Answer = await self.acknowledged(self.layout(id, body), waiting, timeout)
            self.buffered_bytes -= size
            return answer
        except TimeoutError:
            raise ClientError("timeout", f"no acknowledgement within {timeout} s") from None
        finally:
            if waiting.done() and not waiting.cancelled():
                waiting.exception()
            self.forget(id)

    Producer.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """Nothing is counted that nobody waits for."""
    async with PZQ(memory=True) as server:
        client = PzqClient(Runtime(Memory()), server.urls)
        server.faults.add(frozen_daemon(kind="Produce", first=1))
        with suppress(ClientError):
            await client.publish((b"x" * 1000,), timeout=1.0)
        left = client.buffered_bytes
        client.abort()
    assert left == 0, left
