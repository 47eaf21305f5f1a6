"""Defects in callbacks, in background tasks and after pauses (catalogue section NET-3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Callbacks, ClientError
from conformance.clients.reference.narconi.channels import (
    Callback,
    Publishers,
    Publishing,
    Subscription,
)
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.consumer import Delivery

PAUSE_S = 3.0


@mutant("callback-error-stops-the-feed", tag="life-cycle", breaks=["X10"])
class CallbackErrorStopsTheFeed(Callbacks):
    """A message callback that raises is the last one of its subscription."""

    def failed(self, callback: str, error: Exception) -> None:
        super().failed(callback, error)
        if callback == "message":
            raise error


@mutant("callbacks-block-ops", tag="life-cycle", breaks=["X10"])
class CallbacksBlockOps(NarconiClient):
    """An op inside a callback waits for the callback to end."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.lock = asyncio.Lock()

    async def subscribe(self, queue: str, callback: Callback, **more: Any) -> Subscription:
        async def alone(delivery: Delivery) -> None:
            async with self.lock:
                await callback(delivery)

        return await super().subscribe(queue, alone, **more)

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        async with self.lock:
            await super().publish(queue, body, headers)


@mutant("lost-tasks", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class NarconiLostTasks(Publishers):
    """Leaves errors of its background tasks to the garbage collector."""

    def lost(self, queue: str, lost: Publishing, error: ClientError) -> None:
        super().lost(queue, lost, error)
        asyncio.get_running_loop().create_task(_failing(error))


async def _failing(error: ClientError) -> None:
    raise ClientError(error.kind, error.text)


@mutant("a-pause-ends-the-process", tag="life-cycle", breaks=["X11"], aims=["NET-3.11"])
class APauseEndsTheProcess(NarconiClient):
    """Has a watchdog that takes a pause of the process for a dead lock."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.runtime.tasks.spawn(self._watch())

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asleep = loop.time()
            await asyncio.sleep(0.5)
            if loop.time() - asleep > PAUSE_S:
                os._exit(1)


@mutant("one-callback-at-a-time", tag="life-cycle", breaks=["X10"])
class OneCallbackAtATime(NarconiClient):
    """Runs the callbacks of all subscriptions one after the other: a slow one holds up every other queue."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.turn = asyncio.Lock()

    async def subscribe(self, queue: str, callback: Callback, **more: Any) -> Subscription:
        async def in_turn(delivery: Delivery) -> None:
            async with self.turn:
                await callback(delivery)

        return await super().subscribe(queue, in_turn, **more)


@mutant("drained-is-what-was-acknowledged", tag="data", breaks=["N15"])
class DrainedIsWhatWasAcknowledged(NarconiClient):
    """A graceful end waits for acknowledgements, and not for callbacks."""

    async def subscribe(self, queue: str, callback: Callback, **more: Any) -> Subscription:
        made = await super().subscribe(queue, callback, **more)

        async def drain() -> None:
            made.core.stop()
            await made.socket.barrier()
            while made.core.outstanding and made.socket.is_open:
                await asyncio.sleep(0.01)

        made.drain = drain  # type: ignore[method-assign]
        return made
