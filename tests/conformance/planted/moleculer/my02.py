"""A call inside an action does not inherit what is left of the caller's time: it waits without end, and the
node that it asks is told so. Like moleculerjs/moleculer 21 (distributed time-outs) and InDate/devharness
111.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""
    plain = Caller.request

    def request(
        self: Any, action: str, params: Any, meta: Any, limit_s: float, parent: Any, upload: Any
    ) -> Any:
        parent = None if parent is None else replace(parent, deadline=None)
        return plain(self, action, params, meta, limit_s, parent, upload)

    Caller.request = request  # type: ignore[method-assign]


async def witness() -> None:
    """The inner request says how much time is left."""
    async with Moleculer(memory=True) as server:
        node = server.node("fake-1", {"inner": {"act": lambda context: 1}})
        client = made(server)
        await client.connect(5)

        async def outer(context: Any) -> Any:
            return await context.call(context, "inner.act", {})

        client.serve(Service("outer", {"act": outer}))
        await asyncio.sleep(2)
        await node.call_async("outer.act", timeout=2.0)
        timeout = next(one.timeout for one in node.requests if one.action == "inner.act")
        await client.close(1)
    assert timeout and 0 < timeout <= 2000, timeout
