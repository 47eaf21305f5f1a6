"""Every message that is sent puts off the next ping, and the end of the wait for a pong: a publisher that
sends more often than it pings never notices that nobody is at the other end. Like dotnet/MQTTnet 851 and
2244, and mqttjs/MQTT.js 387.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.socket import Socket
from fakebrokers import Narconi
from fakebrokers.faults import half_open

plain = Socket.send


def plant() -> None:
    """Install the defect."""

    def send(self: Any, opcode: int, payload: bytes) -> None:
        plain(self, opcode, payload)
        self._schedule_ping()  # traffic is a sign of life

    Socket.send = send  # type: ignore[method-assign]


async def witness() -> None:
    """A loss is reported within a few pings."""
    happened: list[str] = []

    async def publish() -> None:
        with suppress(ClientError):
            await client.publish("q", b"x", {})

    async with Narconi(memory=True) as server:
        settings = Settings(endpoint=server.url.partition("//")[2], project="test", keepalive_s=1.0)
        client = NarconiClient(Runtime(Memory(), on_session=lambda what, *_: happened.append(what)), settings)
        await client.http.ensure("q")
        await publish()
        server.faults.add(half_open(pass_frame=False, kind="WsPublish", first=1))
        tasks = []
        for _ in range(20):
            tasks.append(asyncio.ensure_future(publish()))
            await asyncio.sleep(0.4)
        client.abort()
        await asyncio.wait(tasks)
    assert "connection_lost" in happened, happened
