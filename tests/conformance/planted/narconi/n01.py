"""A delivery from before a reconnect is acknowledged on the new connection, where its id belongs to another
message: that one is lost without having been processed. Like bunny 142, march_hare 21 and
rabbitmq-dotnet-client 200.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    original = Subscription._renew

    def renew(self: Subscription) -> None:
        former = getattr(self, "core", None)
        original(self)
        if former is not None:
            former._send = self.socket.send
            self.core = former

    Subscription._renew = renew  # type: ignore[method-assign]


async def witness() -> None:
    """What was not processed stays in the queue."""
    came: list[Delivery] = []

    async def on_message(delivery: Delivery) -> None:
        came.append(delivery)

    async with Narconi(memory=True) as broker:
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        for body in (b"one", b"two", b"three"):
            broker.publish("test", "q", body)
        await client.subscribe("q", on_message, ack=True)
        await asyncio.sleep(1)
        first, second, _ = came
        assert first.source is not None and first.ack_id is not None
        first.source.settle(first.ack_id)
        await asyncio.sleep(1)
        broker.kill()
        await asyncio.sleep(10)
        assert second.source is not None and second.ack_id is not None
        with suppress(ClientError):
            second.source.settle(second.ack_id)
        await asyncio.sleep(1)
        client.abort()
        await asyncio.sleep(1)
        left = [message.payload for message in broker.messages("test", "q")]
    assert left == [b"two", b"three"], left
