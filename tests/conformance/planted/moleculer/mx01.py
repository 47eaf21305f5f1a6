"""A node that was taken for dead and comes back as it was (same instance, same `seq`) stays without services:
its INFO counts as old. Calls of its actions find nobody until it is restarted. Like moleculerjs/moleculer
108.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.registry import Peer, Registry
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def counts(self: Registry, peer: Peer, seq: int, instance: Any) -> bool:
        return seq > peer.seq or bool(instance != peer.instance)

    Registry.counts = counts  # type: ignore[method-assign]


async def witness() -> None:
    """A node that was silent for a while is called again."""
    problem = ""
    async with Moleculer(memory=True) as fake:
        node = fake.node("fake-1", {"math": {"double": lambda ctx: 2 * ctx.params["n"]}}, heartbeat_s=1.0)
        settings = Settings("nats", (f"{fake.host}:{fake.port}",), heartbeat_s=1.0, heartbeat_timeout_s=3.0)
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(2)
        await client.caller.call("math.double", {"n": 2}, timeout=5)
        node.stop_heartbeats()
        await asyncio.sleep(10)
        node.resume_heartbeats()
        await asyncio.sleep(5)
        try:
            await client.caller.call("math.double", {"n": 2}, timeout=5)
        except ClientError as error:
            problem = error.text
        await client.close(2)
    assert problem == "", problem
