"""Defects in what a client can be given besides: limits in bytes, ops in callbacks, a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.contents import Contents
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.blazingmq.requests import Make, Requests
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.properties import MAX_NAME, Property

BYTES = "max_unconfirmed_bytes"


@mutant("bytes-are-configured-once", tag="wire", breaks=["B11"])
class BytesAreConfiguredOnce(Queues):
    """Keeps the first limit of bytes when a queue is configured anew."""

    async def configure(self, name: str, options: Mapping[str, int], timeout: float) -> None:
        first = self.find(name).options[BYTES]
        await super().configure(name, {**options, BYTES: first}, timeout)


@mutant("own-close-waits-for-itself", tag="life-cycle", breaks=["X10"])
class OwnCloseWaitsForItself(Queues):
    """A queue is closed when all callbacks have ended, the one that asks for it too."""

    async def close(self, name: str, timeout: float) -> None:
        await self.client.deliveries.feed.drained()
        await super().close(name, timeout)


@mutant("answers-by-the-wall-clock", tag="life-cycle", breaks=["X11"])
class AnswersByTheWallClock(Requests):
    """Waits for answers until the wall clock says that their time is over."""

    async def ask(self, make: Make, timeout: float, late: Callable[[], None] | None = None) -> Any:
        wall = self.link.client.runtime.clock.wall
        end = wall() + timeout
        asking = asyncio.ensure_future(super().ask(make, timeout, late))
        while not asking.done() and wall() < end:
            await asyncio.wait({asking}, timeout=0.05)
        if asking.done():
            return asking.result()
        asking.cancel()
        raise ClientError("timeout", "no answer in time")


@mutant("abort-leaves-requests-waiting", tag="life-cycle", breaks=["X1"])
class AbortLeavesQueueRequestsWaiting(BlazingClient):
    """Requests that are under way when the application drops the client wait until their time is over."""

    def abort(self) -> None:
        if self.link is not None:
            self.link.requests.waiting = {}
        super().abort()


@mutant("names-at-three-bytes-a-letter", tag="data", breaks=["B2"])
class NamesAtThreeBytesALetter(Contents):
    """Refuses names of properties that would not fit if each of their letters had three bytes."""

    def check(self, payload: bytes, properties: Mapping[str, Property]) -> None:
        super().check(payload, properties)
        for name in properties:
            if not name.isascii() and 3 * len(name) > MAX_NAME:
                raise ClientError("invalid", "the name of a property is too long")
