"""Only whole events count as a sign of life of the broker: while one large message comes slowly, the client
takes the broker for dead, ends the connection, and the same message begins again on the next one, for ever.
Like zeromq/libzmq 2709 and sockjs/sockjs-node 169 (heartbeats that time out during a large transfer).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults import throttle

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    def data_received(self: Any, data: bytes) -> None:
        for frame in self.frames.feed(data):
            if self.state == "ended":
                return
            self.watchdog.came()
            self.handle(frame)

    Link.data_received = data_received  # type: ignore[method-assign]


async def witness() -> None:
    """It arrives, and the connection stays."""
    async with BlazingMQ(memory=True, heartbeat_s=1, max_missed=2, heartbeats=False) as server:
        happened: list[str] = []
        runtime = Runtime(Memory(), on_session=lambda what, *_: happened.append(what))
        client = BlazingClient(runtime, server.url.partition("//")[2])
        got: list[int] = []

        async def deliver(delivery: Delivery) -> None:
            got.append(len(delivery.payload))

        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = deliver
        server.faults.add(throttle(20_000, role="deliver", first=1))
        server.publish(URI, b"x" * 200_000)
        await asyncio.sleep(20)
        client.abort()
    assert happened == ["connected"], happened
    assert got == [200_000], got
