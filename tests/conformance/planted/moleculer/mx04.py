"""Where the bus balances, a node listens for its actions only once: after a reconnect it tells all that it
has them and gets no request any more. Like EXXETA/correomqtt 133 and spbrogan/rvc2mqtt 102.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.context import Context
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def report_all(self: MoleculerClient) -> None:
        bus = self.post.bus
        if bus is None or not bus.is_open:
            return
        wanted = self.balanced()
        if self.settings.disable_balancer and wanted != self.__dict__.get("listened"):
            self.__dict__["listened"] = wanted
            bus.write(bus.codec.unsubscribe_balanced())
            await bus.subscribe(wanted)
        self.send_info("", self.infos())

    MoleculerClient.report_all = report_all  # type: ignore[method-assign]


async def witness() -> None:
    """A service answers after a reconnect as before."""
    problem = ""
    async with Moleculer(memory=True) as fake:
        settings = Settings("nats", (f"{fake.host}:{fake.port}",), disable_balancer=True)
        server = MoleculerClient(Runtime(Memory()), settings)
        await server.connect(5)

        async def echo(context: Context) -> Any:
            return context.params

        server.serve(Service("text", {"echo": echo}))
        other = Settings("nats", settings.endpoints, node_id="caller", disable_balancer=True)
        caller = MoleculerClient(Runtime(Memory()), other)
        await caller.connect(5)
        await asyncio.sleep(2)
        await caller.caller.call("text.echo", {"n": 1}, timeout=5)
        fake.kill()
        await asyncio.sleep(10)
        try:
            await caller.caller.call("text.echo", {"n": 2}, timeout=5)
        except ClientError as error:
            problem = error.text
        caller.abort()
        server.abort()
    assert problem == "", problem
