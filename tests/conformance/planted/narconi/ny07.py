"""Closing does not wait for the confirms of what was published: the messages that are under way end as
unknown, although the server confirms them a moment later. Like wialon/gmqtt 139 and eclipse-
paho/paho.mqtt.m2mqtt 9.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi
from fakebrokers.faults.build import latency


def plant() -> None:
    """Install the defect."""

    async def publish_rest(self: Any, patience_s: float) -> None:
        await asyncio.gather(*(one.socket.close() for one in self.publishers.standing()))

    NarconiClient._publish_rest = publish_rest  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """A publish that is under way is confirmed while the client closes."""
    async with Narconi(memory=True) as server:
        client = made(server)
        await client.http.ensure("q")
        await client.publish("q", b"x", {})
        server.faults.add(latency(3.0, kind="WsConfirm", direction="out"))
        publishing = asyncio.ensure_future(client.publish("q", b"y", {}))
        await asyncio.sleep(0.1)
        await client.close(8)
        await publishing
