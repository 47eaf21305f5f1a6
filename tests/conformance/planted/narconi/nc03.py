"""The metadata of a message and its body are sent in two steps, between which another task may send:
messages that are published at the same time get mixed up. Like amqp-rs/lapin 302 and lenkan/deno-amqp 38
(concurrent publishes on one channel interleave their frames).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.api import Metadata
from conformance.clients.reference.narconi.channels import Publishers
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.narconi.websocket import BINARY, TEXT


def plant() -> None:
    """Install the defect."""

    async def publish(self: Any, queue: str, body: bytes, headers: Any) -> None:
        self.runtime.part(Metadata)().check(headers)
        publishing = await self._lines[queue].after(self.publisher(queue))
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(error: Any) -> None:
            if not outcome.done():
                outcome.set_result(error)

        try:
            publishing.core._send(TEXT, publishing.core.encode_metadata(headers))
            await asyncio.sleep(0)  # until it is written
            publishing.core._send(BINARY, body)
            publishing.core.pending.append(done)
            error = await outcome
        except asyncio.CancelledError:
            self.overdue(publishing)
            raise
        if error is not None:
            raise error

    Publishers.publish = publish  # type: ignore[method-assign]


async def witness() -> None:
    """Two messages that are published at once keep their metadata."""
    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        await client.publish("q", b"0", {"x-msg-x-n": "0"})
        both = [client.publish("q", b"%d" % n, {"x-msg-x-n": str(n)}) for n in (1, 2)]
        await asyncio.gather(*both, return_exceptions=True)
        stored = [
            (one.payload.decode(), one.headers.get("x-msg-x-n")) for one in broker.messages("test", "q")
        ]
        client.abort()
    assert stored == [("0", "0"), ("1", "1"), ("2", "2")], stored
