"""All calls that are given no meta share one: what an action has put into the meta of its answer, such as a
user, goes out with the next calls, to any node. Like mozilla-services/autopush 541, celery/kombu 651 and
jasonrbriggs/stomp.py 128 (mutable defaults for headers).
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

NO_META: dict[str, Any] = {}


def plant() -> None:
    """Install the defect."""

    async def call(
        self: Any,
        action: str,
        params: Any = None,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        node: str = "",
        upload: Any = None,
        parent: Any = None,
    ) -> Any:
        command, rest = self.route(action, node)
        limit = self._settings.timeout_s if timeout is None else timeout
        pending = Pending("" if command == "REQB" else rest, dict(meta) if meta else NO_META)
        packet = self.request(action, params, pending.meta, limit, parent, upload)
        id = str(packet["id"])
        self.pending[id] = pending
        sending: asyncio.Task[None] | None = None
        try:
            self._post.send(command, rest, packet)
            if upload is not None:
                sending = self._runtime.tasks.spawn(self.send_up(command, rest, packet, upload))
            return await self.answer_of(pending, limit), pending
        finally:
            self.pending.pop(id, None)
            if sending is not None and not sending.done():
                sending.cancel()

    Caller.call = call  # type: ignore[method-assign]


async def witness() -> None:
    """A call without meta goes out without."""

    def login(ctx: Any) -> str:
        ctx.meta["user"] = "ada"
        return "welcome"

    async with Moleculer(memory=True) as server:
        server.node("auth-1", {"auth": {"login": login}})
        server.node("shop-1", {"shop": {"list": lambda ctx: []}})
        settings = Settings(transporter="nats", endpoints=(server.url.partition("//")[2],))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        await asyncio.sleep(1)
        await client.caller.call("auth.login", {"name": "ada"})
        await client.caller.call("shop.list")
        packets: list[Any] = [packet for _, packet in server.packets("Request")]
        sent = [packet.meta for packet in packets if packet.action == "shop.list"]
        client.abort()
    assert sent, "no request"
    assert not any(sent), sent
