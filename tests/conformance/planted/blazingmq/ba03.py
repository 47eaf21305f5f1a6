"""The client remembers which messages it has confirmed and confirms none a second time: where the first
CONFIRM was lost with its connection, the message stays at the broker and comes again for ever. Like
apache/pulsar 7683 and nats-io/nats-streaming-server 1138 (a redelivered message counts as acknowledged in
the client's tracker).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults import drop

URI = "bmq://bmq.test.mem.priority/orders"


def plant() -> None:
    """Install the defect."""
    confirm = Deliveries.confirm

    def confirm_once(self: Any, delivery: Any) -> None:
        confirmed: set[tuple[str, bytes]] = self.__dict__.setdefault("confirmed", set())
        key = (delivery.queue.uri, delivery.guid)
        if key in confirmed:
            return
        confirm(self, delivery)
        confirmed.add(key)

    Deliveries.confirm = confirm_once  # type: ignore[method-assign]


async def witness() -> None:
    """What comes again, and is confirmed again, is gone."""
    got: list[bytes] = []

    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), broker.url.partition("//")[2])
        await client.connect(5)

        async def take(delivery: Any) -> None:
            got.append(delivery.payload)
            client.deliveries.confirm(delivery)

        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = take
        broker.faults.add(drop(role="ack", nth=1, scope="run"))
        broker.publish(URI, b"one")
        await asyncio.sleep(1)
        broker.kill()
        await asyncio.sleep(10)
        left = broker.messages(URI)
        client.abort()
    assert len(got) == 2, got
    assert not left, left
