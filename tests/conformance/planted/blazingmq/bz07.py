"""A reconnect that times out (the broker accepts the connection and then says nothing, as while it starts)
is the last one: the client reports that it is disconnected and never tries again. Connections that are
refused are tried again. Like porsager/postgres 988 (a connect time-out ends it all, a refusal does not).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.faults import drop


def plant() -> None:
    """Install the defect."""

    def is_final(self: Any, error: ClientError) -> bool:
        return error.kind != "connection"

    BlazingClient.is_final = is_final  # type: ignore[method-assign]


async def witness() -> None:
    """It comes back at the next attempt."""
    async with BlazingMQ(memory=True) as server:
        client = BlazingClient(Runtime(Memory()), server.url.partition("//")[2])
        await client.connect(5)
        server.faults.add(drop(kind="brokerResponse", first=1, scope="run"))
        server.kill()
        await asyncio.sleep(30)
        is_open = client.is_open
        client.abort()
    assert is_open
