"""A subscribe that is cancelled before the server has answered leaves its WebSocket open: messages go there
and are lost. Like asyncmy 156 and psycopg 1345 (connections that a cancelled task leaves behind).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.connection import reach
from conformance.clients.reference.narconi.consumer import Delivery
from conformance.clients.reference.narconi.settings import Settings
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.narconi.websockets import WebSockets
from fakebrokers import Narconi
from fakebrokers.faults import delay


def plant() -> None:
    """Install the defect."""

    async def open_socket(self: WebSockets, socket: Socket) -> None:
        try:
            await reach(self.runtime, self.settings.endpoint, socket)
            await asyncio.shield(socket.opened)
        except Exception:
            socket.abort()
            socket.ended.set()
            raise

    WebSockets.open = open_socket  # type: ignore[method-assign]


async def witness() -> None:
    """The message that comes afterwards stays in the queue."""

    async def on_message(delivery: Delivery) -> None:
        """Nothing is expected."""

    async with Narconi(memory=True) as broker:
        broker.create_queue("test", "q")
        broker.faults.add(delay(2.0, kind="WsAccept"))
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test")
        client = NarconiClient(Runtime(Memory()), settings)
        subscribing = asyncio.ensure_future(client.subscribe("q", on_message))
        await asyncio.sleep(1)
        subscribing.cancel()
        await asyncio.sleep(5)
        broker.publish("test", "q", b"x")
        await asyncio.sleep(1)
        left = len(broker.messages("test", "q"))
        client.abort()
    assert left == 1, "somebody has taken the message"
