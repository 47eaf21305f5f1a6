"""A client with several consumers closes only the socket of the last one: the broker goes on to deliver to
the others, where nobody reads, and other consumers get those messages late. Like pulsar-client-go 282 and
mobile clients such as netclaw 176 (old sockets that are left open).
"""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit import Memory, Runtime
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Delivery
from fakebrokers import PZQ


def plant() -> None:
    """Install the defect."""

    def abort(self: PzqClient) -> None:
        if not self.runtime.is_closed:
            self.runtime.is_closed = True
            self.producer.close()
            self.inquirer.close()
            if self.consumers:
                self.consumers[-1].close()
        self.runtime.end()

    PzqClient.abort = abort  # type: ignore[method-assign]


async def witness() -> None:
    """After the close another client gets all messages at once."""
    got = []

    async def on_message(delivery: Delivery) -> None:
        got.append(delivery.body)

    async def ignored(delivery: Delivery) -> None:
        """This client is closed before anything comes."""

    async with PZQ(memory=True) as broker:
        first = PzqClient(Runtime(Memory()), broker.urls)
        first.subscribe(ignored)
        first.subscribe(ignored)
        await asyncio.sleep(1)
        await first.close()
        second = PzqClient(Runtime(Memory()), broker.urls)
        second.subscribe(on_message)
        await asyncio.sleep(1)
        for number in range(4):
            broker.publish(b"%d" % number)
        await asyncio.sleep(2)
        await second.close()
    assert len(got) == 4, got
