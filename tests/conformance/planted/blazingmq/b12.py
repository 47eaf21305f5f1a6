"""A post right after a reconnect does not wait until its queue is open again: it goes to a broker that does
not know the queue, and is lost. Like rabbitmq-dotnet-client 342 (what is published between the loss and the
recovery disappears) and blazingmq 1476 (posts are sent again before the queue is ready).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults import delay

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    async def opened_again(self: Queue, timeout: float) -> None:
        """Nothing is waited for."""

    Queue.opened_again = opened_again  # type: ignore[method-assign]


async def witness() -> None:
    """The message is stored and acknowledged."""
    async with BlazingMQ(memory=True) as broker:
        broker.faults.add(delay(2.0, kind="openQueue", nth=2, scope="run"))
        came = asyncio.Event()

        def on_session(what: str, *_: object) -> None:
            if what == "reconnected":
                came.set()

        client = BlazingClient(Runtime(Memory(), on_session=on_session), f"{broker.host}:{broker.port}")
        await client.connect(5)
        await client.queues.open("q", URI, frozenset({"write"}), {}, 5)
        broker.kill()
        await came.wait()
        problem = ""
        try:
            await client.posts.post("q", b"x", {}, zlib_wanted=False, wait=True, timeout=5)
        except ClientError as error:
            problem = f"{error.kind}: {error.text}"
        stored = len(broker.messages(URI))
        client.abort()
    assert (problem, stored) == ("", 1), (problem, stored)
