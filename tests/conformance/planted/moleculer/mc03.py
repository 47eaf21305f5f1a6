"""Parameters that count as false (0, false, an empty text or list) are sent as if there were none. Like
SkygearIO/skygear-SDK-JS 228 (only values that are true can be published) and harriedegroot/nl.hdg.mqtt 51.
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
    request = Caller.request

    def truthy(self: Any, action: str, params: Any, *more: Any) -> Any:
        return request(self, action, params or {}, *more)

    Caller.request = truthy  # type: ignore[method-assign]


async def witness() -> None:
    """An action gets what it was called with."""
    values: list[Any] = [0, False, "", [], {}, 1]
    async with Moleculer(memory=True) as moleculer:
        moleculer.node("peer", {"math": {"same": lambda ctx: {"it": ctx.params}}})
        endpoint = f"{moleculer.host}:{moleculer.port}"
        client = MoleculerClient(Runtime(Memory()), Settings(transporter="nats", endpoints=(endpoint,)))
        await client.connect(5.0)
        await asyncio.sleep(2)
        got = [(await client.caller.call("math.same", value, timeout=5.0))[0]["it"] for value in values]
        client.abort()
    assert repr(got) == repr(values), got
