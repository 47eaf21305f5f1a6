"""Defects in heartbeats and in stopping (catalogue sections BMQ-5 and BMQ-6)."""

from __future__ import annotations

import asyncio
import time

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.client import CLOSED, BlazingClient
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.watchdog import Watchdog
from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError
from fakebrokers.blazingmq.frames import Disconnect

BLOCKED_S = 4.0


@mutant("never-answers-heartbeats", tag="life-cycle", breaks=["B15", "X3"])
class NeverAnswersHeartbeats(Link):
    """Gives no sign of life."""

    def heartbeat(self) -> None:
        return


@mutant("answers-heartbeats-twice", tag="wire", breaks=["B15"])
class AnswersHeartbeatsTwice(Link):
    """Gives two signs of life for each request."""

    def heartbeat(self) -> None:
        super().heartbeat()
        super().heartbeat()


@mutant("heartbeats-wait-for-callbacks", tag="life-cycle", breaks=["B15", "X4", "X3", "X10"])
class HeartbeatsWaitForCallbacks(Link):
    """Gives no sign of life while a callback runs."""

    def heartbeat(self) -> None:
        self.client.runtime.tasks.spawn(self.later())

    async def later(self) -> None:
        """Answer after the callbacks."""
        await self.client.deliveries.feed.drained()
        super().heartbeat()


@mutant("no-watchdog", tag="life-cycle", breaks=["B16", "X3"])
class NoWatchdog(Watchdog):
    """Never notices that the broker has fallen silent."""

    def start(self, interval_s: float, most: int) -> None:
        return


@mutant("gives-up-at-the-first-silence", tag="life-cycle", breaks=["B16", "X3", "X11"])
class GivesUpAtTheFirstSilence(Watchdog):
    """Gives the broker up after one silent interval."""

    def start(self, interval_s: float, most: int) -> None:
        if interval_s > 0 and most > 0:
            self.task = self.link.client.runtime.tasks.spawn(self.watch(0.9 * interval_s, 0))


@mutant("no-interval-is-the-end", tag="life-cycle", breaks=["B2", "B16"])
class NoIntervalIsTheEnd(Watchdog):
    """Takes an interval of 0 for one that is over."""

    def start(self, interval_s: float, most: int) -> None:
        self.task = self.link.client.runtime.tasks.spawn(
            self.watch(interval_s or 0.001, most if interval_s else 0)
        )


@mutant("needs-a-request-each-second", tag="life-cycle", breaks=["B2", "B16", "X3", "X11"])
class NeedsARequestEachSecond(Link):
    """Gives a broker up that has sent no heartbeat request for a second, whatever was agreed."""

    asked = False

    def heartbeat(self) -> None:
        self.asked = True
        super().heartbeat()

    async def open(self, endpoint: str, timeout: float) -> None:
        await super().open(endpoint, timeout)
        self.client.runtime.tasks.spawn(self.look())

    async def look(self) -> None:
        """Look once a second."""
        while self.state == "open":
            self.asked = False
            await asyncio.sleep(1.0)
            if not self.asked:
                self.end(ClientError("connection", "no heartbeat"))


@mutant("only-requests-count", tag="life-cycle", breaks=["B16", "X3"])
class OnlyRequestsCount(Link):
    """Takes nothing but heartbeat requests for a sign of life."""

    def data_received(self, data: bytes) -> None:
        heard = self.watchdog.heard
        super().data_received(data)
        self.watchdog.heard = heard

    def heartbeat(self) -> None:
        super().heartbeat()
        self.client.runtime.tasks.spawn(self.count())

    async def count(self) -> None:
        """After the read."""
        self.watchdog.heard = True


# stop


@mutant("hangs-up-before-the-answer", tag="life-cycle", breaks=["B18", "X7"])
class HangsUpBeforeTheAnswer(BlazingClient):
    """Closes the connection without waiting for disconnectResponse."""

    async def send_disconnect(self, link: Link, deadline: float) -> None:
        for queue in self.queues.by_name.values():
            await self.queues.shut(queue, deadline - self.runtime.clock.now())
        link.send(Disconnect(link.requests.next_id()))
        await asyncio.sleep(0.01)


@mutant("says-goodbye-twice", tag="wire", breaks=["B18", "X7"])
class SaysGoodbyeTwice(BlazingClient):
    """Each stop sends a disconnect of its own."""

    async def close(self, timeout: float | None = None) -> None:
        task = asyncio.get_running_loop().create_task(
            self.stop(DEFAULT_TIMEOUT_S if timeout is None else timeout)
        )
        self._closing = self._closing or task
        await asyncio.shield(task)


@mutant("stop-waits-for-callbacks", tag="life-cycle", breaks=["B18", "B19", "X7"])
class StopWaitsForCallbacks(BlazingClient):
    """Stops only when all callbacks have ended."""

    async def stop(self, timeout: float) -> None:
        await self.deliveries.feed.drained()
        await super().stop(timeout)


@mutant("closed-is-internal", tag="wording", breaks=["B1"])
class ClosedIsInternal(BlazingClient):
    """Calls the use of a stopped session an internal error."""

    def check_open(self) -> None:
        if self.runtime.is_closed:
            raise ClientError("internal", CLOSED)


@mutant("holds-the-process", tag="life-cycle", breaks=["B17"], aims=["BMQ-6.07"])
class HoldsTheProcess(BlazingClient):
    """Something of a stopped session still keeps the process from its end."""

    def abort(self) -> None:
        if self._closing is not None:
            time.sleep(BLOCKED_S)
        super().abort()


@mutant("its-own-end-is-a-loss", tag="life-cycle", breaks=["B18", "X7"])
class ItsOwnEndIsALoss(BlazingClient):
    """Reports a loss where it has ended the connection itself."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        if link is self.link and self.runtime.is_closed:
            self.loss_reported(error)
        super().link_ended(link, error)
