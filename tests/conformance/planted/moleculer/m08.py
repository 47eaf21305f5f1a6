"""A node that was silent for too long and then beats again is taken as there, but without its services, and
nobody asks it for them: calls of its actions are not found for ever. Like backend.ai 4491 and nomad 26424.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.registry import Registry
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def heartbeat(self: Registry, packet: dict[str, Any], now: float) -> bool:
        peer = self.peers.get(packet["sender"])
        if peer is None or self.is_outdated(peer, packet):
            return False
        peer.available, peer.heard_at = True, now
        return True

    Registry.heartbeat = heartbeat  # type: ignore[method-assign]


async def witness() -> None:
    """The action can be called again."""
    found: Any = None
    async with Moleculer(memory=True) as bus:
        node = bus.node("shop", {"shop": {"look": lambda context: "here"}}, heartbeat_s=1.0)
        settings = Settings(
            transporter="nats", endpoints=(f"{bus.host}:{bus.port}",), heartbeat_timeout_s=5.0
        )
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        node.stop_heartbeats()
        await asyncio.sleep(20)
        node.resume_heartbeats()
        await asyncio.sleep(10)
        try:
            found, _ = await client.caller.call("shop.look", timeout=5)
        except ClientError as error:
            found = error.code
        client.abort()
    assert found == "here", found
