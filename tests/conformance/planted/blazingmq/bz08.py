"""One client cannot read a fanout queue for two apps: the second open fails with "is open", as queues are
told apart without their ``?id=``. Like Open-EO/openeo-js-client 5 and SignalK/signalk-js-client 73 (a
second subscription to one topic, with other parameters, is taken for the first).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.clients.reference.blazingmq import queues as module
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.fanout/q"


def plant() -> None:
    """Install the defect."""

    def check(self: Any, uri: str, flags: frozenset[str]) -> None:
        if not module._URI.fullmatch(uri) or not flags:
            raise ClientError("invalid", f"not a queue to open: {uri}")
        there = {queue.uri for queue in self.by_name.values()} | self.opening
        if uri.partition("?")[0] in {one.partition("?")[0] for one in there}:
            raise ClientError("invalid", f"{uri} is open")

    Queues.check = check  # type: ignore[method-assign]


async def witness() -> None:
    """Both apps get the message."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        got: list[str] = []

        def noting(app: str) -> Callable[[Delivery], Awaitable[None]]:
            async def deliver(_: Delivery) -> None:
                got.append(app)

            return deliver

        await client.connect(5)
        for app in ("foo", "bar"):
            queue = await client.queues.open(app, f"{URI}?id={app}", frozenset({"read"}), {}, 5)
            queue.callback = noting(app)
        server.publish(URI, "x")
        await asyncio.sleep(1)
        client.abort()
    assert sorted(got) == ["bar", "foo"], got
