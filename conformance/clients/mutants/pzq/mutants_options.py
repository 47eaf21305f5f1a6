"""Defects in what a client can be given besides: ops in callbacks, no time, a clock that jumps, an abort."""

from __future__ import annotations

import asyncio

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.inquirer import Inquirer, Values
from conformance.clients.reference.pzq.ops import PzqOps


@mutant("own-end-waits-for-itself", tag="life-cycle", breaks=["X10"])
class OwnSocketsEndWaitsForItself(PzqOps):
    """A subscription ends when all its callbacks have ended, the one that asks for it too."""

    @kit.op("unsubscribe")
    async def unsubscribe(self, sub: str) -> None:
        consumer = self.adapter.subscription(sub).handle
        await consumer.feed.drained()
        consumer.close()


@mutant("no-time-is-no-limit", tag="life-cycle", breaks=["X8"])
class NoTimeIsNoLimit(Inquirer):
    """Takes a time-out of 0 for none."""

    async def ask(self, timeout: float | None = None) -> Values:
        return await super().ask(timeout or None)


@mutant("monitor-by-the-wall-clock", tag="life-cycle", breaks=["X8", "X11"])
class MonitorByTheWallClock(Inquirer):
    """Waits for the monitor until the wall clock says that the time is over."""

    async def ask(self, timeout: float | None = None) -> Values:
        wall = self.runtime.clock.wall
        end = wall() + (3600.0 if timeout is None else timeout)
        asking = asyncio.ensure_future(super().ask(timeout))
        while not asking.done() and wall() < end:
            await asyncio.wait({asking}, timeout=0.05)
        if asking.done():
            return asking.result()
        asking.cancel()
        raise ClientError("timeout", "the monitor did not answer in time")


@mutant("closed-may-have-been-sent", tag="data", breaks=["X2"])
class ClosedMayHaveBeenSent(PzqClient):
    """Says of a message that it may be stored, though the client had been dropped before."""

    def _check_open(self) -> None:
        if self.runtime.is_closed:
            raise ClientError("closed", "the client is closed")
