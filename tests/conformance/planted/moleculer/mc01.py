"""The task that sends heartbeats ends with the error of the first one that finds no connection, and nobody
starts another: after a longer outage the node is silent, and the others drop it. Like jasonrbriggs/stomp.py
351 (no heartbeats are sent any more after a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def heartbeats(self: Any) -> None:
        while True:
            await asyncio.sleep(self.settings.heartbeat_s)
            self.post.send("HEARTBEAT", "", {"cpu": self.runtime.network.busy_percent()})

    MoleculerClient.heartbeats = heartbeats  # type: ignore[method-assign]


async def witness() -> None:
    """After an outage of several intervals the node gives signs of life again."""
    async with Moleculer(memory=True) as moleculer:
        endpoint = f"{moleculer.host}:{moleculer.port}"
        settings = Settings(transporter="nats", endpoints=(endpoint,), heartbeat_s=2.0)
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5.0)
        await asyncio.sleep(5)
        moleculer.crash()
        await asyncio.sleep(10)
        moleculer.restart()
        await asyncio.sleep(10)
        assert client.is_open
        since = moleculer.journal.records()[-1].seq
        await asyncio.sleep(10)
        beats = [packet for _, packet in moleculer.packets("Heartbeat", since)]
        client.abort()
    assert any(packet.sender == "reference" for packet in beats), beats
