"""If the application's callback for an outcome raises, the rest of the same confirm is lost: the messages in
it are stored, and their outcome becomes a time-out. Like amqp-node/amqplib 12 (an exception in a callback
breaks what the library was doing).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from conformance.clients.reference.kit import ClientError, Memory, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import OnOutcome, Publishing, Receipt
from fakebrokers import RabbitMQStream


def plant() -> None:
    """Install the defect."""
    make: Any = Publishing._receipt

    def receipt(self: Publishing, publisher: Publisher, *more: Any) -> Receipt:
        on_outcome: OnOutcome | None = more[4]

        def watched(publishing_id: int, error: ClientError | None) -> None:
            assert on_outcome is not None
            try:
                on_outcome(publishing_id, error)
            except Exception:
                publisher.__dict__["raised"] = True
                raise

        wanted = None if on_outcome is None else watched
        found: Receipt = make(self, publisher, *more[:4], wanted, *more[5:])
        return found

    def confirmed(self: Publisher, ids: Sequence[int]) -> None:
        self.__dict__["raised"] = False
        for publishing_id in ids:
            self.settle(publishing_id, None)
            if self.__dict__["raised"]:
                return

    Publishing._receipt = receipt  # type: ignore[method-assign,assignment]
    Publisher.confirmed = confirmed  # type: ignore[method-assign]


async def witness() -> None:
    """Each message has its outcome, whatever the callback of another one does."""
    async with RabbitMQStream(memory=True) as broker:
        broker.create_stream("orders")
        client = StreamClient(Runtime(Memory()), [f"{broker.host}:{broker.port}"])
        await client.connect(5)

        def on_outcome(publishing_id: int, error: ClientError | None) -> None:
            if publishing_id == 1:
                raise RuntimeError("the application's")

        receipts = await client.publishing.publish("orders", [b"a", b"b", b"c"], on_outcome=on_outcome)
        await asyncio.sleep(2)
        done = [receipt.outcome.done() for receipt in receipts]
        await client.close(5)
    assert done == [True, True, True], done
