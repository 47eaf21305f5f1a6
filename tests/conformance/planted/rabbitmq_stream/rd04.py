"""A handshake that worked begins the pauses anew: a server that takes each connection and ends it at once
is dialled again and again, after the shortest pause. Like eclipse-mosquitto/mosquitto 737 (no back-off
where the connection is made and then ended by the server).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from fakebrokers import RabbitMQStream
from fakebrokers.faults import fin


def plant() -> None:
    """Install the defect."""
    plain = Recovery.reconnect

    async def reconnect(self: Any) -> None:
        await plain(self)
        self._backoff.reset()

    Recovery.reconnect = reconnect  # type: ignore[method-assign]


async def witness() -> None:
    """In two minutes of such a server, pauses of up to 4 s leave room for few connections."""
    async with RabbitMQStream(memory=True, faults={"faults": []}) as broker:
        losses: list[str] = []

        def happened(what: str, *_: Any) -> None:
            if what == "connection_lost":
                losses.append(what)

        client = StreamClient(Runtime(Memory(), on_session=happened), [f"{broker.host}:{broker.port}"])
        broker.faults.add(fin(on="ready", after_s=0.05, scope="run"))
        await client.connect(5.0)
        await asyncio.sleep(120)
        client.abort()
    assert 5 < len(losses) < 80, len(losses)
