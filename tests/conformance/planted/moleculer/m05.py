"""With the balancer disabled, the topics of a node's actions are not listened to any more after a
reconnect: calls of them time out until the node is started anew. Like moleculer 707.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import STEADY_S, Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def rejoin(self: MoleculerClient) -> None:
        if self.runtime.clock.now() - self._joined_at < STEADY_S:
            await self._between.pause()
        else:
            self._between.reset()
        try:
            await self.reach(self.runtime.backoff(0.2, 2.0).retry)
        except ClientError as error:
            self.runtime.callbacks.trouble("other", error)
            self.runtime.callbacks.report("disconnected", str(error))
            self.abort()
            return
        self.runtime.callbacks.report("reconnected")
        self.send_info("", self.infos())

    MoleculerClient.rejoin = rejoin  # type: ignore[method-assign]


async def answer(context: Any) -> str:
    """An action."""
    return "here"


async def witness() -> None:
    """The action answers before and after."""
    found = []
    async with Moleculer(memory=True) as bus:
        place = (f"{bus.host}:{bus.port}",)
        both = [
            MoleculerClient(
                Runtime(Memory(), seed=number),
                Settings(transporter="nats", endpoints=place, node_id=name, disable_balancer=True),
            )
            for number, name in enumerate(("worker", "caller"))
        ]
        worker, caller = both
        for each in both:
            await each.connect(5)
        worker.serve(Service("work", {"ask": answer}))
        await asyncio.sleep(3)
        for _ in range(2):
            try:
                data, _ = await caller.caller.call("work.ask", timeout=5)
            except ClientError as error:
                data = error.kind
            found.append(data)
            bus.kill()
            await asyncio.sleep(10)
        for each in both:
            each.abort()
    assert found == ["here", "here"], found
