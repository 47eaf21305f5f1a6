"""Before a large body the client lets others run: where several large messages are published at a time
their frames mix, and the metadata of one become the body of another. Like Polyconseil/aioamqp 205 and
ruby-amqp/amqp 72 (frames of concurrent publishes interleave).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.api import Metadata
from conformance.clients.reference.narconi.channels import Publishers
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.narconi.websocket import BINARY, TEXT

LARGE = 16 * 1024


def plant() -> None:
    """Install the defect."""

    async def publish(self: Any, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        self.runtime.part(Metadata)().check(headers)
        publishing = await self._lines[queue].after(self.publisher(queue))
        core = publishing.core
        outcome: asyncio.Future[ClientError | None] = asyncio.get_running_loop().create_future()

        def done(error: ClientError | None) -> None:
            if not outcome.done():
                outcome.set_result(error)

        core._send(TEXT, core.encode_metadata(headers))
        if len(body) >= LARGE:
            await asyncio.sleep(0)  # the loop may write what is there
        core._send(BINARY, body)
        core.pending.append(done)
        try:
            error = await outcome
        except asyncio.CancelledError:
            self.overdue(publishing)
            raise
        if error is not None:
            raise error

    Publishers.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """Messages are stored as they were published."""
    bodies = [bytes([number]) * (20 * 1024) for number in (1, 2, 3)]
    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        settings = Settings(endpoint=server.url.partition("//")[2], project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        publishing = [client.publish("q", body, {}) for body in bodies]
        await asyncio.gather(*publishing, return_exceptions=True)
        await asyncio.sleep(1)
        stored = [message.payload for message in server.messages("test", "q")]
        client.abort()
    assert stored == bodies, [body[:40] for body in stored]
