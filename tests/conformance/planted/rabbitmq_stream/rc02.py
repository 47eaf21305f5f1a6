"""A connect gives its whole time to the first server of the list: where that one hangs, the others are never
tried. Like tulios/kafkajs 368 (the connection is stuck if the first broker of the list is) and
kafka-python-ng/kafka-python-ng 47.
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.links import Links
from fakebrokers import RabbitMQStream
from fakebrokers.faults import silent


def plant() -> None:
    """Install the defect."""

    async def connect_control(self: Any, deadline: float) -> None:
        problem = ClientError("invalid", "there is no endpoint")
        for endpoint in self.endpoints:
            try:
                self.control = await self.open(endpoint, deadline)
            except ClientError as error:
                problem = error
                if error.kind == "auth":
                    break
                continue
            return
        raise problem

    Links.connect_control = connect_control  # type: ignore[method-assign]


async def witness() -> None:
    """The first server never answers, and the second one is found in time."""
    async with (
        RabbitMQStream(memory=True, faults=[silent(on="accept")]) as hung,
        RabbitMQStream(memory=True) as broker,
    ):
        endpoints = [f"{one.host}:{one.port}" for one in (hung, broker)]
        client = StreamClient(Runtime(Memory()), endpoints)
        await client.connect(10.0)
        assert client.is_open
        client.abort()
