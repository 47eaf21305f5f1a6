"""A consumer goes to the first replica that Metadata names and to no other: while that node cannot be
reached, nobody can subscribe, although other members of the stream are there. Like mgodave/barge 21 and
sarama 2090.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from conformance.clients.reference.kit import ClientError, Memory, Runtime, Wire
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.subscription import Message
from fakebrokers import RabbitMQStream
from fakebrokers.rabbitmq_stream.codes import Code


def plant() -> None:
    """Install the defect."""

    async def reader_link(self: Locator, stream: str, deadline: float) -> Link:
        where = await self.locate(stream, deadline)
        members = [*where.replicas, *([where.leader] if where.leader else [])]
        if not members:
            raise ClientError("refused", f"{stream} has no member now", code=Code.STREAM_NOT_AVAILABLE)
        return await self.link_to(members[0], deadline)

    Locator.reader_link = reader_link  # type: ignore[method-assign]


class Torn(Memory):
    """A network in which one place cannot be reached.

    Attributes:
        gone: That place.
    """

    gone = ""

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        if endpoint == self.gone:
            raise ConnectionRefusedError("nobody is there")
        return await super().dial(endpoint, make)


async def witness() -> None:
    """The subscription is made at another member."""
    got = []

    async def on_message(message: Message) -> None:
        got.append(message.body)

    async with RabbitMQStream(memory=True, nodes=3) as broker:
        broker.create_stream("s")
        network = Torn()
        client = StreamClient(Runtime(network), [f"{broker.host}:{broker.port}"])
        await client.connect()
        where = await client.locator.locate("s", client.runtime.clock.deadline(5))
        network.gone = where.replicas[0]
        await client.consuming.subscribe("s", on_message, timeout=10)
        broker.publish("s", [b"hello"])
        await asyncio.sleep(5)
        await client.close()
    assert got == [b"hello"], got
