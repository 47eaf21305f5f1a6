"""The meta of requests is collected in one table of the node: an action sees what earlier callers sent
along, and answers carry it on. Like phoenix-dataplane/phoenix 129 and democratize-technology/vikunja-mcp 90
(what was made for the first call is used for all).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""
    plain = Server.context

    def context(self: Any, packet: Any, service: Any, stream: Any) -> Any:
        made = plain(self, packet, service, stream)
        table = self.__dict__.setdefault("_meta", {})
        table.update(made.meta)
        made.meta = table
        return made

    Server.context = context  # type: ignore[method-assign]


async def witness() -> None:
    """A request without meta has none."""
    seen: list[Any] = []
    async with Moleculer(memory=True) as server:
        node = server.node("fake-1")
        client = made(server)
        await client.connect(5)

        async def act(context: Any) -> Any:
            seen.append(dict(context.meta))
            return None

        client.serve(Service("s", {"act": act}))
        await asyncio.sleep(2)
        await node.call_async("s.act", timeout=5.0, meta={"user": "ada"})
        await node.call_async("s.act", timeout=5.0)
        await client.close(1)
    assert "user" in seen[0] and "user" not in seen[1], seen
