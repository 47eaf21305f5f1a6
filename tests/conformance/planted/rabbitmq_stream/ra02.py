"""Once the client has failed over to a later address of its list it never tries the earlier ones again:
when that server goes, too, it stays away, although the first one is back. Like eclipse-paho/paho.mqtt.c
1661 and eclipse-paho/paho.mqtt.javascript 204.
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.links import Links
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    async def connect_control(self: Any, deadline: float) -> None:
        problem = ClientError("invalid", "there is no endpoint")
        clock = self.runtime.clock
        first = self.__dict__.get("current", 0)
        for number, endpoint in enumerate(self.endpoints[first:], first):
            share = (deadline - clock.now()) / (len(self.endpoints) - number)
            try:
                self.control = await self.open(endpoint, clock.now() + share)
            except ClientError as error:
                problem = error
                if error.kind == "auth":
                    break
                continue
            self.current = number
            return
        raise problem

    Links.connect_control = connect_control  # type: ignore[method-assign]


async def witness() -> None:
    """The client finds whichever server is there."""
    async with RabbitMQStream(memory=True) as one, RabbitMQStream(memory=True) as two:
        servers = [each.url.partition("//")[2] for each in (one, two)]
        client = StreamClient(Runtime(Memory()), servers)
        await client.connect(5)
        one.crash()
        await asyncio.sleep(20)
        assert client.is_open, "it has not failed over"
        one.restart()
        two.crash()
        await asyncio.sleep(60)
        is_back = client.is_open
        client.abort()
        two.restart()
    assert is_back
