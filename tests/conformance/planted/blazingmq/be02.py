"""A broker that refuses the client keeps its connection: the error goes to the caller, and nobody closes the
socket. Like njouanin/hbmqtt 188 (the client does not close connections that were rejected, so open
sockets pile up).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.handshake import Handshake
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.faults import refuse_negotiation


def plant() -> None:
    """Install the defect."""
    plain = Link.given_up

    def fail(self: Any, error: ClientError) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def given_up(self: Any, error: ClientError) -> ClientError:
        done = self.handshake.done
        if done.done() and not done.cancelled() and done.exception() is not None:
            return error  # the broker has answered
        return plain(self, error)

    Handshake.fail = fail  # type: ignore[method-assign]
    Link.given_up = given_up  # type: ignore[method-assign]


async def witness() -> None:
    """After a refusal the broker has no connection of the client."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        broker.faults.add(refuse_negotiation(nth=1, scope="run"))
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        try:
            await client.connect(5.0)
        except ClientError as error:
            assert error.kind == "refused", error
        await asyncio.sleep(5)
        left = list(broker.engine.connections)
        client.abort()
    assert not left, left
