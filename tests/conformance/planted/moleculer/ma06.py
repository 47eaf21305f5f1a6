"""With balancing by the broker a node subscribes to the topics of new services and never leaves those of
services that it has taken back: it goes on to get a share of the requests, and answers that there is no
such service. Like nats-io/nats.node 43 (a missing UNSUB).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def report_all(self: Any) -> None:
        bus = self.post.bus
        if bus is None or not bus.is_open:
            return
        if self.settings.disable_balancer:
            known: set[tuple[str, str]] = bus.__dict__.setdefault("known", set())
            new = [topic for topic in self.balanced() if topic not in known]
            known.update(new)
            if new:
                await bus.subscribe(new)
        self.send_info("", self.infos())

    MoleculerClient.report_all = report_all  # type: ignore[method-assign]


async def witness() -> None:
    """Requests go to the node that still has the service."""

    async def add(context: Any) -> Any:
        return context.params["a"] + context.params["b"]

    async with Moleculer(memory=True) as server:
        where = (server.url.partition("//")[2],)
        one, two, caller = (
            MoleculerClient(Runtime(Memory()), Settings("nats", where, node_id=id, disable_balancer=True))
            for id in ("one", "two", "caller")
        )
        for node in (one, two, caller):
            await node.connect(5)
        for node in (one, two):
            node.serve(Service("math", {"add": add}))
        await asyncio.sleep(2)
        one.unserve("math")
        await asyncio.sleep(2)
        refused = []
        for number in range(12):
            try:
                await caller.caller.call("math.add", {"a": number, "b": 1}, timeout=2.0)
            except ClientError as error:
                refused.append(error.code)
        for node in (one, two, caller):
            node.abort()
    assert not refused, refused
