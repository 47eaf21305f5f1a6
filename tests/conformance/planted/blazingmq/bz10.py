"""What the broker says of a message that was posted without waiting is thrown away, refusals too: once the
queue is full, the application posts on, and all of it is lost without a word. Like Govcraft/emergent 65 and
rsocket/rsocket-java 838 (what the server refuses of fire-and-forget messages is ignored).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.posts import Posts
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://small.priority/q"


def plant() -> None:
    """Install the defect."""

    def unexpected(self: Any, message: Any) -> None:
        self.client.runtime.callbacks.note(f"an ACK for no open message: {message.correlation_id}")

    Posts.unexpected = unexpected  # type: ignore[method-assign]


async def witness() -> None:
    """The application hears of what was not stored."""
    async with BlazingMQ(memory=True, domains={"small.priority": {"queue_messages": 1}}) as server:
        troubles: list[str] = []
        runtime = Runtime(Memory(), on_error=lambda where, error: troubles.append(error.text))
        client = BlazingClient(runtime, server.url.partition("//")[2])
        await client.connect(5)
        await client.queues.open("q", URI, frozenset({"write"}), {}, 5)
        for _ in range(5):
            await client.posts.post("q", b"x", {}, zlib_wanted=False, wait=False, timeout=5)
        await asyncio.sleep(1)
        stored = len(server.messages(URI))
        client.abort()
    assert stored < 5, stored
    assert troubles, "nothing was reported"
