"""The meta of an answer goes nowhere: what an action has put into it does not come back to the caller. Like
DataDog/dd-trace-js 6262 (the caller's meta is as it was before the call, whatever the called action set).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def merge(self: Any, pending: Any, packet: Any) -> None:
        pending.answered_by = packet["sender"]

    Caller.merge = merge  # type: ignore[method-assign]


def greet(context: Any) -> str:
    """An action that sets meta."""
    context.meta["a"] = "Doe"
    return "hello"


async def witness() -> None:
    """A caller finds in its meta what the action has set."""
    async with Moleculer(memory=True, faults={"faults": []}) as moleculer:
        settings = Settings(transporter="nats", endpoints=(moleculer.url.partition("//")[2],))
        client = MoleculerClient(Runtime(Memory()), settings)
        moleculer.node("fake-1", {"test": {"greet": greet}})
        await client.connect(5.0)
        await asyncio.sleep(2)
        _, known = await client.caller.call("test.greet", meta={"a": "John", "b": 1}, timeout=5.0)
        client.abort()
    assert known.meta == {"a": "Doe", "b": 1}, known.meta
