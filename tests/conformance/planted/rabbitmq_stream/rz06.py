"""A client that is told to have no heartbeats (0) takes those that the server offers: 0 is "no wish" and
not "none". Like CopernicaMarketingSoftware/AMQP-CPP 271 and 0rpc/zerorpc-node 85 (heartbeats that cannot be
switched off).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.journal import Tap


def plant() -> None:
    """Install the defect."""

    def agree_heartbeat(self: Any, offered: int) -> int:
        own: int = self.settings.heartbeat_s
        return min(offered, own) if offered and own else offered or own

    Handshake.agree_heartbeat = agree_heartbeat  # type: ignore[method-assign]


async def witness() -> None:
    """No heartbeat goes out."""
    async with RabbitMQStream(memory=True, heartbeat_s=10) as server:
        settings = Settings(heartbeat_s=0)
        client = StreamClient(Runtime(Memory()), [server.url.partition("//")[2]], settings)
        await client.connect(5)
        await asyncio.sleep(60)
        beats = server.journal.select(kind="Heartbeat", tap=Tap.RECEIVED)
        client.abort()
    assert not beats, beats
