"""An upload goes on when its call has ended: after a time-out the source is drawn to its end, and all of it
is still sent to a node that has no use for it. Like oven-sh/bun 33338 (the body of a request that timed out
is never cancelled).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller, Pending, Upload
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


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
        upload: Upload | None = None,
        parent: Any = None,
    ) -> tuple[Any, Pending]:
        command, rest = self.route(action, node)
        limit = self._settings.timeout_s if timeout is None else timeout
        pending = Pending("" if command == "REQB" else rest, dict(meta or {}))
        packet = self.request(action, params, pending.meta, limit, parent, upload)
        id = str(packet["id"])
        self.pending[id] = pending
        try:
            self._post.send(command, rest, packet)
            if upload is not None:
                self._runtime.tasks.spawn(self.send_up(command, rest, packet, upload))
            return await self.answer_of(pending, limit), pending
        finally:
            self.pending.pop(id, None)

    Caller.call = call  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """Soon after the time-out nothing more is drawn."""
    drawn = []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(100):
            await asyncio.sleep(0.1)
            drawn.append(number)
            yield b"x"

    async with Moleculer(memory=True) as server:
        server.node("n", services={"svc": {"take": lambda context: 1}})
        client = made(server)
        await client.connect(10)
        with suppress(ClientError):
            await client.caller.call("svc.take", timeout=1.0, upload=Upload(chunks()))
        await asyncio.sleep(5)
        client.abort()
    assert len(drawn) < 15, len(drawn)
