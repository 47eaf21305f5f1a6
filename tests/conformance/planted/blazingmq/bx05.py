"""All queues count as usable as soon as there is a connection again, and not only when each is open: what
waits to be posted to any but the first one is sent too early, and refused. Like
jwalton/node-amqp-connection-manager 369.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import late_answer

URIS = ("bmq://bmq.test.mem.priority/orders", "bmq://bmq.test.mem.priority/bills")


def plant() -> None:
    """Install the defect."""

    async def restore(self: Queues) -> None:
        link = self.client.link_now()
        for each in self.by_name.values():
            each.ready.set()
        for name, queue in tuple(self.by_name.items()):
            try:
                await self.open_again(queue)
            except ClientError as error:
                if error.kind == "connection":
                    raise
                self.by_name.pop(name, None)
                self.client.runtime.callbacks.report("target_closed", error.text, error.code, queue.uri)
            if self.client.link is not link:
                raise ClientError("connection", "the connection is gone")

    Queues.restore = restore  # type: ignore[method-assign]


async def witness() -> None:
    """A message that was posted during a loss is stored."""
    problem = ""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        for uri in URIS:
            await client.queues.open(uri, uri, frozenset({"write"}), {}, 5)
        broker.faults.add(late_answer("openQueueResponse", 1.0))
        broker.kill()
        await asyncio.sleep(0.1)
        try:
            await client.posts.post(URIS[1], b"x", {}, zlib_wanted=False, wait=True, timeout=10)
        except ClientError as error:
            problem = f"{error.kind}: {error.text}"
        client.abort()
    assert problem == "", problem
