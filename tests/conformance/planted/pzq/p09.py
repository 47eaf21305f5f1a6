"""Of several brokers that a consumer is to serve only the first is connected to: messages of the others
wait for ever. Like mgodave/barge 21 (one address of the list is used) and rust-nats 4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Delivery
from conformance.clients.reference.pzq.sockets import Connector, OnMessage, Socket
from fakebrokers import PZQ
from fakebrokers.pzq.memory import SocketType


def plant() -> None:
    """Install the defect."""
    original = Connector.connect

    def connect(
        self: Connector, endpoint: str | Sequence[str], kind: SocketType, on_message: OnMessage
    ) -> Socket:
        first = endpoint if isinstance(endpoint, str) else endpoint[0]
        return original(self, first, kind, on_message)

    Connector.connect = connect  # type: ignore[method-assign]


async def witness() -> None:
    """Messages of both brokers arrive."""
    got = []

    async def on_message(delivery: Delivery) -> None:
        got.append(delivery.body[0])

    async with PZQ(memory=True) as one, PZQ(memory=True) as two:
        urls = {**one.urls, "send": [one.send_url, two.send_url]}
        client = PzqClient(Runtime(Memory()), urls)
        client.subscribe(on_message)
        one.publish(b"one")
        two.publish(b"two")
        await asyncio.sleep(3)
        await client.close()
    assert sorted(got) == [b"one", b"two"], got
