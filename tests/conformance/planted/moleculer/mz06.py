"""A node that stops in good order says farewell before the requests that run have been answered: their
callers take it for gone and fail, although the answers follow. Like moleculerjs/moleculer 160 and 311 (a
graceful stop that rejects what is under way).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import STOP_DELAY_S, Settings
from fakebrokers import Moleculer
from fakebrokers.moleculer.calls import RemoteError


def plant() -> None:
    """Install the defect."""

    async def send_close(self: Any, patience_s: float) -> None:
        self.seq += 1
        if self._announcing is not None:
            self._announcing.cancel()
        self.send_info("", [])
        await asyncio.sleep(STOP_DELAY_S)
        await self.server.stopped()
        self.post.send("DISCONNECT", "", {})
        await self.server.finished(patience_s)
        bus = self.post.bus
        if bus is not None:
            await bus.drained()
            bus.close()

    MoleculerClient.send_close = send_close  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """What has begun before the stop is answered."""

    async def slow(context: Context) -> Any:
        await asyncio.sleep(1)
        return "done"

    async with Moleculer(memory=True) as server:
        other = server.node("other")
        client = made(server)
        await client.connect(10)
        client.serve(Service("svc", {"slow": slow}))
        await asyncio.sleep(2)
        call = asyncio.ensure_future(other.call_async("svc.slow", timeout=5.0))
        await asyncio.sleep(0.2)
        await client.close(10)
        try:
            answer = await call
        except RemoteError as error:
            raise AssertionError(str(error)) from None
    assert answer == "done", answer
