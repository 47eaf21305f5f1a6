"""When a node leaves, the calls to every node fail whose id contains its id: with ``n-1`` gone, ``n-10`` is
taken for gone as well. Like aerospike/aerospike-admin 242 (an id that matches another one with the same
beginning).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.faults import delay


def plant() -> None:
    """Install the defect."""

    def concerns(self: Any, pending: Pending, peer: str) -> bool:
        return peer in pending.target or peer == pending.answered_by

    Caller.concerns = concerns  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """A call to one node outlives another one."""
    async with Moleculer(memory=True) as server:
        leaving = server.node("n-1")
        server.node("n-10", services={"svc": {"slow": lambda context: "done"}})
        client = made(server)
        await client.connect(10)
        server.faults.add(delay(2.0, kind="Response", direction="out"))
        call = asyncio.ensure_future(client.caller.call("svc.slow", timeout=5.0))
        await asyncio.sleep(0.5)
        leaving.stop()
        data, _ = await call
        client.abort()
    assert data == "done", data
