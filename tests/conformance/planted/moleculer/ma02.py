"""A call that asks for no time-out (0) gets that of the settings. Like tornadoweb/tornado 55,
prestonp/simple-rcon 11 and panva/openid-client 443 (a 0 counts as not given), and moleculerjs/moleculer 640
(the time-out of a call cannot be overridden).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""
    call = Caller.call

    async def call_in_time(
        self: Any, action: str, params: Any = None, *, timeout: float | None = None, **more: Any
    ) -> Any:
        limit = timeout or self._settings.timeout_s
        return await call(self, action, params, timeout=limit, **more)

    Caller.call = call_in_time  # type: ignore[method-assign]


async def witness() -> None:
    """Such a call waits as long as it takes."""

    async def slow(context: Any) -> str:
        await asyncio.sleep(3)
        return "done"

    async with Moleculer(memory=True) as server:
        where = (server.url.partition("//")[2],)
        worker = MoleculerClient(Runtime(Memory()), Settings("nats", where, node_id="worker"))
        caller = MoleculerClient(Runtime(Memory()), Settings("nats", where, node_id="caller", timeout_s=1.0))
        for node in (worker, caller):
            await node.connect(5)
        worker.serve(Service("jobs", {"run": slow}))
        await asyncio.sleep(2)
        try:
            data, _ = await caller.caller.call("jobs.run", timeout=0.0)
        except ClientError as error:
            data = error.kind
        caller.abort()
        worker.abort()
    assert data == "done", data
