"""A node that leaves the balancing to the bus remembers what it has subscribed to, and does so again only
when its services have changed: after a lost connection nobody reaches its actions any more. Like
moleculerjs/moleculer 707 (disableBalancer, and nothing arrives after a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def report_all(self: Any) -> None:
        bus = self.post.bus
        if bus is None or not bus.is_open:
            return
        wanted = self.balanced()
        if self.settings.disable_balancer and getattr(self, "told", None) != wanted:
            bus.write(bus.codec.unsubscribe_balanced())
            await bus.subscribe(wanted)
            self.told = wanted
        self.send_info("", self.infos())

    MoleculerClient.report_all = report_all  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """The action answers before and after the loss."""

    async def echo(context: Context) -> Any:
        return context.params

    async with Moleculer(memory=True) as server:
        other = server.node("other", disable_balancer=True)
        client = made(server, disable_balancer=True)
        await client.connect(10)
        client.serve(Service("svc", {"echo": echo}))
        await asyncio.sleep(2)
        assert await other.call_async("svc.echo", {"n": 1}) == {"n": 1}
        server.kill("c1")
        await asyncio.sleep(5)
        try:
            answer = await other.call_async("svc.echo", {"n": 2}, timeout=3)
        except Exception as error:
            raise AssertionError(str(error)) from None
        client.abort()
    assert answer == {"n": 2}, answer
