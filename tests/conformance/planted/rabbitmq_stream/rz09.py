"""With several endpoints the first one may use up the whole time of a connect: if its server accepts and
then says nothing, the others are never tried in time and the connect fails. Endpoints that refuse are
passed over as they should be. Like mysql-net/MySqlConnector 1527 and 556 (hosts in front that hang, and the
good one is not reached).
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
    """The second endpoint is reached in time."""
    async with RabbitMQStream(memory=True) as hung, RabbitMQStream(memory=True) as good:
        hung.faults.add(silent(on="accept"))
        endpoints = [server.url.partition("//")[2] for server in (hung, good)]
        client = StreamClient(Runtime(Memory()), endpoints)
        await client.connect(6)
        assert client.is_open
        client.abort()
