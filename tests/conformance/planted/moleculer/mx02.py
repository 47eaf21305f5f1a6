"""The meta of calls that are given none is one table for all of them: what one answer puts in goes along with
every later call, to whoever is called. Like metarhia/metacom 309 (what belongs to a request is kept in a
wider scope).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.services import Context


def plant() -> None:
    """Install the defect."""
    call, merge = Caller.call, Caller.merge

    async def with_usual(
        self: Caller, action: str, params: Any = None, *, meta: Mapping[str, Any] | None = None, **more: Any
    ) -> tuple[Any, Pending]:
        usual: dict[str, Any] = self.__dict__.setdefault("usual", {})
        return await call(self, action, params, meta=meta or usual, **more)

    def keep(self: Caller, pending: Pending, packet: dict[str, Any]) -> None:
        merge(self, pending, packet)
        if isinstance(packet.get("meta"), dict):
            self.__dict__.setdefault("usual", {}).update(packet["meta"])

    Caller.call = with_usual  # type: ignore[method-assign]
    Caller.merge = keep  # type: ignore[method-assign]


async def witness() -> None:
    """A call without meta has none."""

    def login(ctx: Context) -> str:
        ctx.meta["token"] = "secret"
        return "ok"

    async with Moleculer(memory=True) as fake:
        node = fake.node("fake-1", {"users": {"login": login, "list": lambda ctx: []}})
        client = MoleculerClient(Runtime(Memory()), Settings("nats", (f"{fake.host}:{fake.port}",)))
        await client.connect(5)
        await asyncio.sleep(2)
        await client.caller.call("users.login", {}, timeout=5)
        await client.caller.call("users.list", {}, timeout=5)
        meta = node.requests[-1].meta
        await client.close(2)
    assert meta == {}, meta
