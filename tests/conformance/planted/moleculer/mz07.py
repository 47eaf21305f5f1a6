"""An answer that is larger than the server takes is noted in the own log, and nothing is sent in its place:
the caller waits until its time is up, and never learns why. Like hmchangw/newchat 49 (replies above NATS'
max_payload).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.calls import RemoteError


def plant() -> None:
    """Install the defect."""

    def reply(self: Any, packet: Any, fields: Any) -> None:
        try:
            self._post.send("RES", packet["sender"], {"id": packet["id"], **fields})
        except ClientError as error:
            self._runtime.callbacks.trouble("write", error)

    Server.reply = reply  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """The caller hears at once that it was too large."""

    async def large(context: Context) -> Any:
        return "x" * 50_000

    async with Moleculer(memory=True, bus={"max_payload": 20_000}) as server:
        other = server.node("other")
        client = made(server)
        await client.connect(10)
        client.serve(Service("svc", {"large": large}))
        await asyncio.sleep(2)
        begun, took_s = asyncio.get_running_loop().time(), 99.0
        try:
            await other.call_async("svc.large", timeout=5.0)
        except RemoteError:
            took_s = asyncio.get_running_loop().time() - begun
        client.abort()
    assert took_s < 1, took_s
