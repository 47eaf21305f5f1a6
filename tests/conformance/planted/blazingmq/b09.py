"""A negative consumer priority is sent as 0: a consumer that was to stand behind all others gets messages
like them. Like gmr/pamqp 45 (negative priorities of consumers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import ConfigureStream


def plant() -> None:
    """Install the defect."""
    original = Queues.newer

    def newer(
        self: Queues, queue: Queue, options: Mapping[str, int] | None
    ) -> Callable[[int], ConfigureStream]:
        if options is not None:
            options = {**options, "consumer_priority": max(0, options["consumer_priority"])}
        return original(self, queue, options)

    Queues.newer = newer  # type: ignore[method-assign]


async def witness() -> None:
    """The broker is told the priority that was asked for."""
    async with BlazingMQ(memory=True) as broker:
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        options = {"consumer_priority": -5}
        await client.queues.open("q", "bmq://bmq.test.mem.priority/q", frozenset({"read"}), options, 5)
        frame = broker.journal.select(kind="configureStream")[0].frame
        client.abort()
    assert frame.stream_parameters.subscriptions[0].consumers[0].consumer_priority == -5
