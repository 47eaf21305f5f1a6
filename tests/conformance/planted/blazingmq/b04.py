"""What a broker can is remembered from the first connection: after a failover to an older broker the client
sends it requests that it does not know. Like kafka-python 1455 (brokers of different versions, and a client
that takes them for equal).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.handshake import Handshake
from conformance.clients.reference.kit import Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import BrokerResponse
from fakebrokers.faults import rewrite


def plant() -> None:
    """Install the defect."""
    original = Handshake.answered
    known: dict[BlazingClient, str] = {}

    def answered(self: Handshake, frame: BrokerResponse) -> None:
        original(self, frame)
        self.features = known.setdefault(self.link.client, self.features)

    Handshake.answered = answered  # type: ignore[method-assign]


async def witness() -> None:
    """An older broker gets the older request."""
    async with BlazingMQ(memory=True) as broker:
        older = {"broker_identity.features": "PROTOCOL_ENCODING:BER,JSON"}
        broker.faults.add(rewrite(older, kind="brokerResponse", nth=2, scope="run"))
        client = BlazingClient(Runtime(Memory()), f"{broker.host}:{broker.port}")
        await client.connect(5)
        await client.queues.open("q", "bmq://bmq.test.mem.priority/q", frozenset({"read"}), {}, 5)
        broker.kill()
        await asyncio.sleep(10)
        said = [
            record.kind
            for record in broker.journal
            if record.kind in ("configureStream", "configureQueueStream")
        ]
        client.abort()
    assert said == ["configureStream", "configureQueueStream"], said
