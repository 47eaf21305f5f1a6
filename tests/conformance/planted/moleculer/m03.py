"""A call with a time-out of 0, which means none, gets the node's default all the same, and a long action
fails. Like moleculer 640 and Nodejs-Sia 36 (a time-out of 0 that cannot be set).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    original = Caller.call

    async def call(
        self: Caller, action: str, params: Any = None, *, timeout: float | None = None, **more: Any
    ) -> tuple[Any, Pending]:
        return await original(self, action, params, timeout=timeout or None, **more)

    Caller.call = call  # type: ignore[method-assign]


async def slow(context: object) -> str:
    """An action that takes its time."""
    await asyncio.sleep(5)
    return "done"


async def witness() -> None:
    """The slow action is waited for."""
    found = ""
    async with Moleculer(memory=True) as bus:
        place = (f"{bus.host}:{bus.port}",)
        worker = MoleculerClient(
            Runtime(Memory()), Settings(transporter="nats", endpoints=place, node_id="worker")
        )
        await worker.connect(5)
        worker.serve(Service("work", {"slow": slow}))
        settings = Settings(transporter="nats", endpoints=place, timeout_s=1.0)
        client = MoleculerClient(Runtime(Memory(), seed=1), settings)
        await client.connect(5)
        await asyncio.sleep(3)
        try:
            found, _ = await client.caller.call("work.slow", timeout=0.0)
        except ClientError as error:
            found = error.kind
        client.abort()
        worker.abort()
    assert found == "done", found
