"""Only heartbeats show that the server lives: a server that is busy sending messages sends none, and its
connection is given up in the middle of the traffic. Like gmr/rabbitpy 70.
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.frames import Heartbeat


def plant() -> None:
    """Install the defect."""
    receive = Connection.receive

    def received(self: Connection, data: bytes, now: float) -> None:
        was_open, before = self.state == "open", self.last_received
        self.__dict__["beat"] = False
        receive(self, data, now)
        if was_open and not self.__dict__["beat"]:
            self.last_received = before

    def heartbeat(self: Connection, frame: Heartbeat) -> None:
        self.__dict__["beat"] = True

    Connection.receive = received  # type: ignore[method-assign]
    Connection.heartbeat = heartbeat  # type: ignore[method-assign]


async def witness() -> None:
    """A connection over which messages come is not given up."""
    told: list[str] = []
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("orders")
        runtime = Runtime(Memory(), on_session=lambda what, *_: told.append(what))
        client = StreamClient(runtime, [f"{broker.host}:{broker.port}"], Settings(heartbeat_s=4))
        await client.connect(5)

        async def on_message(message: Message) -> None:
            pass

        await client.consuming.subscribe("orders", on_message)
        for number in range(60):
            broker.publish("orders", f"{number}")
            await asyncio.sleep(0.5)
        await client.close(5)
    assert told == ["connected"], told
