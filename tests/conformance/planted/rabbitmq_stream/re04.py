"""The smaller of two frame maxima counts, also where it is 0, which is no limit: a client without a limit of
its own answers the server's with 0, and keeps to none. Like CopernicaMarketingSoftware/AMQP-CPP 475 (a
frame-max of 0 is taken as it is).
"""

from __future__ import annotations

from typing import Any

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.handshake import Handshake
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""

    def agree_frame_max(self: Any, offered: int) -> int:
        return min(offered, int(self.settings.frame_max))

    Handshake.agree_frame_max = agree_frame_max  # type: ignore[method-assign]


async def witness() -> None:
    """A client without a limit agrees to that of the server, and none of its frames is larger."""
    async with RabbitMQStream(memory=True, frame_max=8192, faults={"faults": []}) as broker:
        broker.create_stream("orders")
        settings = Settings(frame_max=0)
        client = StreamClient(Runtime(Memory()), [broker.url.partition("//")[2]], settings)
        await client.connect(5.0)
        assert client.links.control is not None
        agreed = client.links.control.core.frame_max
        receipts = await client.publishing.publish("orders", [bytes(500)] * 100, timeout=5.0)
        for receipt in receipts:
            await receipt.confirmed()
        client.abort()
    assert agreed == 8192, agreed
