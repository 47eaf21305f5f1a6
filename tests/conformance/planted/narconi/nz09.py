"""A reconnect that meets an outage behind the server (an upgrade refused with status 500) is given up for
good: the subscription stays dead when the outage is over. Like rivet-dev/actors 5699 and
miguelgrinberg/python-socketio 485.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.websockets import WebSockets
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def is_final(self: Any, error: ClientError) -> bool:
        return error.definite and error.code is not None

    WebSockets.is_final = is_final  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """After the outage messages come again."""
    came = []

    async def taken(delivery: Any) -> None:
        came.append(delivery.body)

    async with Narconi(memory=True) as server:
        server.create_queue("test", "q")
        client = made(server, auto_reconnect=True)
        await client.subscribe("q", taken)
        server.lose_backend(down=True)
        await asyncio.sleep(5)
        server.restore_backend()
        await asyncio.sleep(15)
        server.publish("test", "q", b"x")
        await asyncio.sleep(1)
        client.abort()
    assert came == [b"x"], came
