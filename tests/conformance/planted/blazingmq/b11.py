"""Two apps of one fanout queue cannot be open in one client: the second is refused as if it were the first,
since the app is left out when names are compared. Like openeo-js-client 5 and mqtt_client 631 (a second
subscription is taken for the first).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ


def plant() -> None:
    """Install the defect."""
    original = Queues.check

    def check(self: Queues, uri: str, flags: frozenset[str]) -> None:
        original(self, uri, flags)
        there = [queue.uri for queue in self.by_name.values()]
        if any(each.partition("?")[0] == uri.partition("?")[0] for each in (*there, *self.opening)):
            raise ClientError("invalid", f"{uri} is open")

    Queues.check = check  # type: ignore[method-assign]


async def witness() -> None:
    """Both apps get the message."""
    got: list[str] = []

    async def on_message(delivery: Delivery) -> None:
        got.append(delivery.queue.uri)

    uri = "bmq://bmq.test.mem.fanout/q"
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        for app in ("foo", "bar"):
            queue = await client.queues.open(app, f"{uri}?id={app}", frozenset({"read"}), {}, 5)
            queue.callback = on_message
        broker.publish(uri, b"x")
        await asyncio.sleep(1)
        client.abort()
    assert sorted(got) == [f"{uri}?id=bar", f"{uri}?id=foo"], got
