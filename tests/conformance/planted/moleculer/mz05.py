"""Other nodes are told the time-out of a call in whole seconds: a call with half a second is announced as
one that waits for ever, so that they go on working on what nobody waits for. Like e2b-dev/E2B 1558 (a
time-out that ``int`` makes zero).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer

plain = Caller.request


def plant() -> None:
    """Install the defect."""

    def request(
        self: Any, action: str, params: Any, meta: Any, limit_s: float, parent: Any, upload: Any
    ) -> Any:
        return plain(self, action, params, meta, int(limit_s), parent, upload)

    Caller.request = request  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node of it."""
    place = server.url.partition("//")[2]
    return MoleculerClient(
        Runtime(Memory()), Settings(transporter=server.transporter, endpoints=(place,), **more)
    )


async def witness() -> None:
    """The other node gets the time-out in milliseconds."""
    async with Moleculer(memory=True) as server:
        node = server.node("n", services={"svc": {"act": lambda context: 1}})
        client = made(server)
        await client.connect(10)
        for timeout in (0.5, 2.0, 2.5):
            await client.caller.call("svc.act", timeout=timeout)
        told = [request.timeout for request in node.requests]
        client.abort()
    assert told == [500, 2000, 2500], told
