"""A node that stops right after a change of its services announces them once more after it has taken all of
them back: other nodes send it requests while it goes. Like moleculerjs/moleculer 1185 (the debounced
announcement is not interrupted by the stop).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.serving import Service
from conformance.clients.reference.moleculer.settings import STOP_DELAY_S, Settings
from fakebrokers import Moleculer


def plant() -> None:
    """Install the defect."""

    async def send_close(self: Any, patience_s: float) -> None:
        self.seq += 1
        self.send_info("", [])
        await asyncio.sleep(STOP_DELAY_S)
        await self.server.stopped()
        await self.server.finished(patience_s)
        self.post.send("DISCONNECT", "", {})
        bus = self.post.bus
        if bus is not None:
            await bus.drained()
            bus.close()

    MoleculerClient.send_close = send_close  # type: ignore[method-assign]


async def witness() -> None:
    """After the INFO without services there is none with them."""

    async def echo(context: Any) -> Any:
        return context.params

    async with Moleculer(memory=True) as server:
        settings = Settings("nats", (server.url.partition("//")[2],), node_id="leaving")
        client = MoleculerClient(Runtime(Memory()), settings)
        await client.connect(5)
        client.serve(Service("one", {"echo": echo}))
        await asyncio.sleep(1)
        client.serve(Service("two", {"echo": echo}, stop_s=1.5))
        await asyncio.sleep(0.1)
        await client.close(5)
        await asyncio.sleep(1)
        packets: list[Any] = [packet for _, packet in server.packets("Info")]
        counts = [len(packet.services) for packet in packets if packet.sender == "leaving"]
    assert counts[-1] == 0, counts
