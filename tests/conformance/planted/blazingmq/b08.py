"""The tier in the name of a queue is left out when the queue is opened: the client reads and writes another
queue than the one that was named. Near to Tasmota 1528 (a prefix that is not used as it was set).
"""

from __future__ import annotations

import re

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.schema import HandleParameters


def plant() -> None:
    """Install the defect."""
    original = Queues.parameters

    def parameters(self: Queues, queue: Queue) -> HandleParameters:
        named, queue.uri = queue.uri, re.sub(r"\.~[-a-zA-Z0-9._]+/", "/", queue.uri)
        try:
            return original(self, queue)
        finally:
            queue.uri = named

    Queues.parameters = parameters  # type: ignore[method-assign]


async def witness() -> None:
    """The broker has the queue that was named."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        await client.queues.open("q", "bmq://bmq.test.mem.priority.~lab/q", frozenset({"write"}), {}, 5)
        said = [record.frame.handle_parameters.uri for record in broker.journal.select(kind="openQueue")]
        client.abort()
    assert said == ["bmq://bmq.test.mem.priority.~lab/q"], said
