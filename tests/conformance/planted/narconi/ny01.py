"""A subscription that was lost is opened again without its limit: the server then sends as much as it likes
to a consumer that wanted two at a time. Like smallrye/smallrye-reactive-messaging 2084 and ruby-amqp/amqp
127 (prefetch is lost with a reconnect).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    plain = Subscription.reopen

    async def reopen(self: Any) -> None:
        self._query = {name: value for name, value in self._query.items() if name != "limit"}
        await plain(self)

    Subscription.reopen = reopen  # type: ignore[method-assign]


def made(server: Any, **more: Any) -> NarconiClient:
    """A client of it."""
    settings = Settings(endpoint=server.url.partition("//")[2], project="test", **more)
    return NarconiClient(Runtime(Memory()), settings)


async def witness() -> None:
    """No more than two are unacknowledged at a time, after the reconnect too."""
    seen: list[Delivery] = []
    async with Narconi(memory=True) as server:
        client = made(server, auto_reconnect=True)
        server.create_queue("test", "q")

        async def take(delivery: Delivery) -> None:
            seen.append(delivery)

        await client.subscribe("q", take, ack=True, limit=2)
        for number in range(6):
            server.publish("test", "q", str(number))
        await asyncio.sleep(1)
        before = len(seen)
        server.kill()
        await asyncio.sleep(5)
        after = len(seen) - before
        await client.close(1)
    assert before == 2, before
    assert after == 2, after
