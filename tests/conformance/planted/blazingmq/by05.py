"""The properties of a post are collected in a table that is used again for the next one: a message has the
properties of those before it, too. Like phoenix-dataplane/phoenix 129 and nats-io/nats.java 1059 (headers
that are shared by messages).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.properties import Property, PropertyType

A = "bmq://bmq.test.mem.priority/a"
B = "bmq://bmq.test.mem.priority/b"
C = "bmq://bmq.test.mem.priority/c"
BOTH = frozenset({"read", "write"})


def made(server: Any, reports: list[str] | None = None) -> BlazingClient:
    """A client of it."""
    heard: list[str] = [] if reports is None else reports
    runtime = Runtime(Memory(), on_session=lambda what, *_: heard.append(what))
    return BlazingClient(runtime, server.url.partition("//")[2])


def take(client: BlazingClient, queue: Queue, seen: list[Any], pause_s: float = 0.0) -> None:
    """Subscribe."""

    async def callback(delivery: Delivery) -> None:
        seen.append(delivery)
        await asyncio.sleep(pause_s)

    queue.callback = callback
    client.deliveries.subscribe(queue)


def plant() -> None:
    """Install the defect."""
    plain = Contents.pack

    def pack(self: Any, payload: bytes, properties: Any, **more: Any) -> Any:
        table = self.__dict__.setdefault("_table", {})
        table.update(properties)
        return plain(self, payload, table, **more)

    Contents.pack = pack  # type: ignore[method-assign]


async def witness() -> None:
    """Each message has its own properties."""
    seen: list[Delivery] = []
    async with BlazingMQ(memory=True) as broker:
        client = made(broker)
        await client.connect(5)
        queue = await client.queues.open("a", A, BOTH, {}, 5)
        take(client, queue, seen)
        red = {"colour": Property(PropertyType.STRING, "red")}
        await client.posts.post("a", b"1", red, zlib_wanted=False, wait=True, timeout=5)
        await client.posts.post("a", b"2", {}, zlib_wanted=False, wait=True, timeout=5)
        await asyncio.sleep(1)
        await client.close(5)
    assert [len(one.properties) for one in seen] == [1, 0], seen
