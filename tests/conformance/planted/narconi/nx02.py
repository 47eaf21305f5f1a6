"""The acknowledgement of a delivery of the lost connection goes over the new one, where its id means another
message or none: a message that nobody has processed is acknowledged. Like hivemq/hivemq-mqtt-client 428 and
amqp-rs/lapin 434.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Consumer, Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""

    def renew(self: Subscription) -> None:
        callbacks = self._runtime.callbacks
        self.socket = self._websockets.socket(self._queue, "consume", self._query, self._message, self.lost)
        self.core = self._runtime.part(Consumer)(
            lambda opcode, payload: self.socket.send(opcode, payload),  # noqa: PLW0108 - whichever it is then
            self._feed.put,
            lambda error: callbacks.trouble("read", error),
            ack=self._ack,
            encoding=self._query.get("encoding"),
        )

    Subscription._renew = renew  # type: ignore[method-assign]


async def witness() -> None:
    """An acknowledgement that is too late acknowledges nothing else."""
    held: list[Delivery] = []
    async with Narconi(memory=True) as broker:
        settings = Settings(endpoint=f"{broker.host}:{broker.port}", project="test", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        for body in ("first", "second"):
            broker.publish("test", "orders", body)

        async def deliver(delivery: Delivery) -> None:
            if delivery.body == b"first" and delivery.source is not None and delivery.ack_id is not None:
                delivery.source.settle(delivery.ack_id)
            else:
                held.append(delivery)

        await client.subscribe("orders", deliver, ack=True)
        await asyncio.sleep(1)
        broker.kill()
        await asyncio.sleep(5)
        broker.publish("test", "orders", "third")
        await asyncio.sleep(1)
        old = held[0]
        with suppress(ClientError):
            assert old.source is not None and old.ack_id is not None
            old.source.settle(old.ack_id)
        await asyncio.sleep(1)
        unacked = broker.unacked("test", "orders")
        client.abort()
    assert unacked == 2, unacked
