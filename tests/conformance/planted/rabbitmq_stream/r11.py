"""When a publish that waits for room is cancelled, the next confirm wakes it instead of the one behind it,
which then waits although there is room. Like python/asyncio 270 and aiohttp 9671.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream
from fakebrokers.faults import hold


def plant() -> None:
    """Install the defect."""

    def next_turn(self: Publishing, publisher: Publisher) -> None:
        line = self._turns.get(publisher)
        if line and (publisher.connection is None or self.may_send(publisher)):
            turn = line.popleft()
            if not turn.done():
                turn.set_result(None)

    Publishing._next_turn = next_turn  # type: ignore[method-assign]
    Publishing.leave_line = lambda self, line, turn: None  # type: ignore[method-assign]


async def witness() -> None:
    """The one behind the cancelled one is sent as soon as there is room."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("s")
        broker.faults.add(hold(kind="PublishConfirm", nth=1, name="late"))
        settings = Settings(unconfirmed_max=1)
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"], settings)
        await client.connect()
        await client.publishing.publish("s", [b"first"])
        cancelled = asyncio.ensure_future(client.publishing.publish("s", [b"cancelled"], timeout=30))
        await asyncio.sleep(0.1)
        waiting = asyncio.ensure_future(client.publishing.publish("s", [b"behind"], timeout=30))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.sleep(0.1)
        broker.faults.release("late")
        await asyncio.sleep(5)
        stored = [message.body for message in broker.messages("s")]
        waiting.cancel()
        await client.close()
    assert stored == [b"first", b"behind"], stored
