"""Where a super stream has led one key, it is taken to lead all others: the answer to Route is kept for the
super stream and not for the key. Like rabbitmq/rabbitmq-stream-rust-client 243 (the cache of routes is not
for each routing key).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    plain = SuperStreams.route

    async def route(self: Any, super_stream: str, key: str, deadline: float) -> list[str]:
        routes = self.__dict__.setdefault("routes", {})
        if not routes.get(super_stream):
            routes[super_stream] = await plain(self, super_stream, key, deadline)
        return list(routes[super_stream])

    SuperStreams.route = route  # type: ignore[method-assign]


async def witness() -> None:
    """Each key leads to the partition that is bound with it."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        broker.create_super_stream("orders", ["orders-eu", "orders-us"], ["eu", "us"])
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5.0)
        deadline = client.runtime.clock.deadline(5.0)
        found = [await client.super_streams.targets("orders", "key", key, deadline) for key in ("eu", "us")]
        client.abort()
    assert found == [["orders-eu"], ["orders-us"]], found
