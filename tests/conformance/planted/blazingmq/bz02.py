"""An application whose session callback raises as it hears "reconnected" has broken the recovery: the error
ends the client's own task, the queues are not opened again, consumers get nothing and posts time out,
though the connection is there. Callbacks that raise at other moments do no harm. Like
rabbitmq/rabbitmq-dotnet-client 658 (an exception around the recovery event, and no recovery after it).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import ATTEMPT_S, BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Delivery
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ

URI = "bmq://bmq.test.mem.priority/q"


def plant() -> None:
    """Install the defect."""

    async def reconnect(self: Any) -> None:
        callbacks = self.runtime.callbacks
        try:
            await self.pauses.retry(lambda: self.dial(ATTEMPT_S), self.is_final)
        except ClientError as error:
            self.queues.end()
            callbacks.report("disconnected", error.text)
            return
        callbacks.on_session("reconnected", "", None, None)
        try:
            await self.queues.restore()
        except ClientError as error:
            callbacks.note(f"lost again while the queues were opened: {error.text}")

    BlazingClient.reconnect = reconnect  # type: ignore[method-assign]


async def witness() -> None:
    """The queue comes back all the same."""
    async with BlazingMQ(memory=True) as server:
        got: list[bytes] = []

        def happened(what: str, *_: Any) -> None:
            if what == "reconnected":
                raise RuntimeError("a mistake of the application")

        async def deliver(delivery: Delivery) -> None:
            got.append(delivery.payload)

        client = BlazingClient(Runtime(Memory(), on_session=happened), server.url.partition("//")[2])
        await client.connect(5)
        queue = await client.queues.open("q", URI, frozenset({"read"}), {}, 5)
        queue.callback = deliver
        server.kill()
        await asyncio.sleep(5)
        server.publish(URI, "x")
        await asyncio.sleep(1)
        client.abort()
    assert got == [b"x"], got
