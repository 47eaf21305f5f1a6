"""The consumer's book of unacknowledged deliveries is carried over a reconnect: an acknowledgement for a
delivery of the old connection goes out on the new one, where its id means nothing. Like rabbitmq/rabbitmq-
java-client 343 and EasyNetQ/EasyNetQ 1329 (unknown delivery tag after a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    plain = Subscription._renew

    def renew(self: Any) -> None:
        core = getattr(self, "core", None)
        plain(self)
        if core is not None:
            core._send = self.socket.send
            self.core = core

    Subscription._renew = renew  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """A delivery of a connection that is gone cannot be acknowledged any more."""
    seen: list[Delivery] = []
    kind = ""
    async with Narconi(memory=True) as server:
        client = made(server, auto_reconnect=True)
        server.create_queue("test", "q")

        async def take(delivery: Delivery) -> None:
            seen.append(delivery)

        await client.subscribe("q", take, ack=True)
        server.publish("test", "q", b"x")
        await asyncio.sleep(1)
        server.kill()
        await asyncio.sleep(5)
        try:
            seen[0].source.settle(seen[0].ack_id)  # type: ignore[union-attr,arg-type]
        except ClientError as error:
            kind = error.kind
        await client.close(1)
    assert len(seen) == 2, len(seen)
    assert kind, "it was sent"
