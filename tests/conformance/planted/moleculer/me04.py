"""An answer that is a stream goes out without meta: what the caller sent along, and what the action has
added, is lost. Like moleculerjs/moleculer 1122 (meta is there for ordinary calls, and empty as soon as
data are streamed).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    plain = Server.send_down

    async def send_down(self: Any, packet: Any, context: Context, stream: Upload) -> None:
        await plain(self, packet, replace(context, meta={}), stream)

    Server.send_down = send_down  # type: ignore[method-assign]


async def pieces() -> AsyncIterator[bytes]:
    """What is streamed."""
    yield b"tea"


async def read(context: Context) -> Upload:
    """An action that answers with a stream."""
    return Upload(pieces())


async def witness() -> None:
    """The opening packet of a stream that answers carries the meta of the request."""
    async with Moleculer(memory=True, faults={"faults": []}) as moleculer:
        settings = Settings(transporter="nats", endpoints=(moleculer.url.partition("//")[2],))
        client = MoleculerClient(Runtime(Memory()), settings)
        node = moleculer.node("fake-1")
        await client.connect(5.0)
        client.serve(Service("files", {"read": read}))
        await asyncio.sleep(2)
        await node.call_async("files.read", meta={"user": "ann"})
        metas = [packet.meta for _, packet in moleculer.packets("Response") if not packet.seq]
        client.abort()
    assert metas and metas[0] == {"user": "ann"}, metas
