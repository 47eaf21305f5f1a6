"""A message that cannot be read ends the work on its event: the good ones behind it are never delivered.
Like thomhurst/Dekaf 2065 (records behind a malformed one of the same batch are dropped in silence).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.codes import Compression
from fakebrokers.blazingmq.frames import Push, PushMessage
from fakebrokers.errors import WireError

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    def pushed(self: Any, frame: Any) -> None:
        try:
            for message in frame.messages:
                self.contents.unpack(message)
                self.take(message)
        except WireError as error:
            self.trouble(f"a message that cannot be read: {error}")
        if frame.rest:
            self.trouble(f"{len(frame.rest)} bytes of a PUSH event that cannot be read")

    Deliveries.pushed = pushed  # type: ignore[method-assign]


async def witness() -> None:
    """Of three messages in one event the second is broken, and the third arrives."""
    got: list[bytes] = []
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5.0)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5.0)

        async def take(delivery: Any) -> None:
            got.append(delivery.payload)

        queue.callback = take
        client.deliveries.subscribe(queue)
        first = PushMessage(queue.q_id, bytes(15) + b"\1", b"first")
        broken = PushMessage(queue.q_id, bytes(15) + b"\2", b"no zlib", compression=Compression.ZLIB)
        third = PushMessage(queue.q_id, bytes(15) + b"\3", b"third")
        (connection,) = broker.connections
        broker.say(connection["name"], Push((first, broken, third)))
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"first", b"third"], got
