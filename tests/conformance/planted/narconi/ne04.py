"""An acknowledgement goes out on the connection that the subscription has now, although its number belongs
to the one before: it ends another message. Like ruby-amqp/bunny 142 (deliveries of a lost connection are
acknowledged on the recovered one, where their tags mean something else).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.narconi.channels import Subscription
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Consumer, Delivery
from conformance.clients.reference.narconi.settings import Settings
from fakebrokers import Narconi


def plant() -> None:
    """Install the defect."""
    plain_renew, plain_settle, plain_settle_to = Subscription._renew, Consumer.settle, Consumer.settle_to

    def renew(self: Any) -> None:
        plain_renew(self)
        self.core.subscription = self

    def settle(self: Any, ack_id: str) -> None:
        plain_settle(self.subscription.core, ack_id)

    def settle_to(self: Any, ack_id: str) -> None:
        plain_settle_to(self.subscription.core, ack_id)

    Subscription._renew = renew  # type: ignore[method-assign]
    Consumer.settle = settle  # type: ignore[method-assign]
    Consumer.settle_to = settle_to  # type: ignore[method-assign]


async def witness() -> None:
    """The first of three messages is acknowledged, the connection is lost, and then the second one is
    acknowledged under its old number: the third stays.
    """
    async with Narconi(memory=True, faults={"faults": []}) as narconi:
        narconi.create_queue("gold", "orders")
        settings = Settings(endpoint=narconi.url.partition("//")[2], project="gold", auto_reconnect=True)
        client = NarconiClient(Runtime(Memory()), settings)
        came: list[Delivery] = []

        async def take(delivery: Delivery) -> None:
            came.append(delivery)

        await client.subscribe("orders", take, ack=True)
        for body in (b"tea", b"milk", b"sugar"):
            narconi.publish("gold", "orders", body)
        await asyncio.sleep(5)
        for number in (0, 1):
            source, ack_id = came[number].source, came[number].ack_id
            assert source is not None and ack_id is not None
            try:
                source.settle(ack_id)
            except ClientError as error:
                assert error.kind in ("closed", "invalid"), error
            if number == 0:
                await asyncio.sleep(1)
                narconi.kill()
                await asyncio.sleep(20)
        await asyncio.sleep(1)
        client.abort()
        await asyncio.sleep(1)
        left = [message.payload for message in narconi.messages("gold", "orders")]
    assert left == [b"milk", b"sugar"], left
