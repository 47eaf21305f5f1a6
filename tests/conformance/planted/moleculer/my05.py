"""When a node is gone, the calls to it fail, but not the streams that it was sending: who reads one waits
for ever. Like moleculerjs/moleculer 1307 (streams of a node that has disconnected are left as they are).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.moleculer.caller import Caller
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.settings import Settings
from fakebrokers import Moleculer
from fakebrokers.faults.build import drop
from fakebrokers.moleculer.services import Stream


def made(server: Any, **more: Any) -> MoleculerClient:
    """A node on it."""
    settings = Settings("nats", (server.url.partition("//")[2],), **more)
    return MoleculerClient(Runtime(Memory()), settings)


def plant() -> None:
    """Install the defect."""

    def lost(self: Any, peer: str) -> None:
        for id, pending in list(self.pending.items()):
            if self.concerns(pending, peer):
                self.pending.pop(id, None)
                pending.fail(ClientError("connection", f"the node {peer} is gone", code=503))

    Caller.lost = lost  # type: ignore[method-assign]


async def witness() -> None:
    """The reader of a stream hears that its node is gone."""
    kind = ""
    async with Moleculer(memory=True) as server:
        node = server.node("fake-1", {"s": {"numbers": lambda context: Stream([1, 2], object_mode=True)}})
        client = made(server)
        await client.connect(5)
        await asyncio.sleep(1)
        server.faults.add(drop(kind="Response", where={"seq": {"ge": 2}}))
        data, _ = await client.caller.call("s.numbers", timeout=5)
        asyncio.get_running_loop().call_later(2, node.stop)
        try:
            async with asyncio.timeout(10):
                async for _ in data:
                    pass
        except ClientError as error:
            kind = error.kind
        except TimeoutError:
            kind = "nothing"
        client.abort()
    assert kind == "connection", kind
