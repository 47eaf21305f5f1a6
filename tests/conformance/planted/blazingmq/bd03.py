"""The last request of a close waits for its answer as long as that takes: the time-out of the close counts
for the queues alone. Like rabbitmq/rabbitmq-java-client 46 (close waits without limit where the server is
congested).
"""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.kit import ClientError, Memory, Runtime
from fakebrokers import BlazingMQ
from fakebrokers.blazingmq.frames import Disconnect
from fakebrokers.faults import drop

FOREVER_S = 1e9


def plant() -> None:
    """Install the defect."""

    async def send_disconnect(self: Any, link: Any, deadline: float) -> None:
        for queue in tuple(self.queues.by_name.values()):
            if queue not in self.queues.by_name.values():
                continue
            try:
                await self.queues.shut(queue, deadline - self.runtime.clock.now())
            except ClientError as error:
                if error.kind not in ("refused", "closed"):
                    raise
            self.queues.forget(queue)
        await link.requests.ask(Disconnect, FOREVER_S)

    async def close(self: Any, timeout: float | None = None) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.stop(timeout or FOREVER_S))
        await asyncio.shield(self._closing)

    BlazingClient.send_disconnect = send_disconnect  # type: ignore[method-assign]
    BlazingClient.close = close  # type: ignore[method-assign]


async def witness() -> None:
    """A close whose Disconnect is not answered ends in its time."""
    async with BlazingMQ(memory=True, faults={"faults": []}) as broker:
        broker.faults.add(drop(kind="disconnectResponse"))
        client = BlazingClient(Runtime(Memory()), broker.url.removeprefix("tcp://"))
        await client.connect(5.0)
        closing = asyncio.ensure_future(client.close(2.0))
        done, _ = await asyncio.wait({closing}, timeout=30)
        closing.cancel()
        if done:
            closing.exception()
        client.abort()
    assert done, "the close did not end within 30 s"
