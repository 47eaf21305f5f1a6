"""An upload whose call is cancelled just stops: no end packet follows, and the action at the other node
waits for the rest for ever. Like moleculer-web 337 and graphql-upload 81.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from conformance.clients.reference.moleculer.streams import cut
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def send_up(self: Caller, command: str, rest: str, opening: dict[str, Any], upload: Upload) -> None:
        seq = 0
        later = {**opening, "meta": {}}
        async for chunk in upload.chunks:
            for piece in cut(chunk, self._post.chunk_limit):
                seq += 1
                self._post.send(command, rest, {**later, "params": piece, "stream": True, "seq": seq})
                await self._post.drained()
        self.send_end(command, rest, {**later, "params": None, "stream": False, "seq": seq + 1})

    Caller.send_up = send_up  # type: ignore[method-assign]


async def drops() -> AsyncIterator[bytes]:
    """A slow source."""
    for _ in range(100):
        await asyncio.sleep(1)
        yield b"drop"


async def witness() -> None:
    """The other node is told that the upload is over."""
    async with Moleculer(memory=True) as bus:
        bus.node("store", {"store": {"put": lambda context: context.stream}})
        settings = Settings(transporter="nats", endpoints=(f"{bus.host}:{bus.port}",))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        calling = asyncio.ensure_future(client.caller.call("store.put", upload=Upload(drops())))
        await asyncio.sleep(5)
        calling.cancel()
        await asyncio.sleep(2)
        last = [packet for _, packet in bus.packets("Request")][-1]
        client.abort()
    assert last.stream is False, last
