"""Services whose name has a dot, such as ``v2.users``, cannot be called: the name of the service is taken
to end at the first dot. Like moleculer-java 7, moleculer-rs 28 and moleculer-go 84.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Handler, Server, Service
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    def find(self: Server, action: Any) -> tuple[Service, Handler] | None:
        if not isinstance(action, str):
            return None
        name, _, raw = action.partition(".")
        service = self.services.get(name)
        return None if service is None or raw not in service.actions else (service, service.actions[raw])

    Server.find = find  # type: ignore[method-assign]


async def look(context: Any) -> str:
    """An action."""
    return "here"


async def witness() -> None:
    """A node that calls it gets an answer."""
    async with Moleculer(memory=True) as bus:
        node = bus.node("caller")
        settings = Settings(transporter="nats", endpoints=(f"{bus.host}:{bus.port}",))
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        client.serve(Service("v2.users", {"look": look}))
        await asyncio.sleep(2)
        try:
            found = await node.call_async("v2.users.look", target="reference")
        except Exception as error:
            found = repr(error)
        client.abort()
    assert found == "here", found
