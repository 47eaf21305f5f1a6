"""Defects in heartbeats, closing, and streams that move (catalogue section RMQS-5)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Callbacks, ClientError, Runtime
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery, User
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.frames import Close

# liveness


@mutant("beats-too-late", tag="life-cycle", breaks=["R16", "R18", "X3"])
class BeatsTooLate(Connection):
    """Sends a Heartbeat only after two and a half periods."""

    def heartbeat_due(self) -> float | None:
        return self.last_sent + 2.5 * self.heartbeat_s if self.is_beating() else None


class _AlwaysOpen(StreamClient):
    @property
    def is_open(self) -> bool:
        return not self.runtime.is_closed


@mutant("silence-ends-quietly", tag="life-cycle", breaks=["R18", "X3"], also=[_AlwaysOpen])
class SilenceEndsQuietly(Recovery):
    """Takes the loss of a silent connection for a close that its user wanted."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        if error.text.startswith("nothing came"):
            self.links.all.remove(link)
            for user in self.users_of(link):
                self.detach(user, error)
            return
        super().link_ended(link, error)


class _Busy(Callbacks):
    """Knows whether a callback runs."""

    is_busy = False

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        self.is_busy = True
        await super().contain_async(callback, act)
        self.is_busy = False


@mutant("callback-stops-heartbeats", tag="life-cycle", breaks=["R18", "X3"], also=[_Busy])
class CallbackStopsHeartbeats(Connection):
    """Sends no Heartbeat while a callback runs."""

    def __init__(self, runtime: Runtime, *more: Any) -> None:
        super().__init__(runtime, *more)
        self.callbacks: Any = runtime.callbacks

    def heartbeat_due(self) -> float | None:
        due = super().heartbeat_due()
        return max(due, self.now + 0.5) if due is not None and self.callbacks.is_busy else due

    def handle_timer(self, now: float) -> None:
        if self.callbacks.is_busy:
            self.now = now
            self.requests.expire(now)
        else:
            super().handle_timer(now)


@mutant("loss-unnoticed", tag="life-cycle", breaks=["R17", "R18", "X2", "X6", "X11"])
class LossUnnoticed(Connection):
    """Does not notice that an open connection has ended."""

    def lost(self, now: float, problem: str) -> None:
        if self.state != "open" or self.closing:
            super().lost(now, problem)


# closing


@mutant("server-close-unanswered", tag="wire", breaks=["R17", "X7"])
class ServerCloseUnanswered(Connection):
    """Does not answer the server's Close."""

    def close_asked(self, frame: Close) -> None:
        self.end(ClientError("closed", frame.reason, code=frame.code, definite=False))


@mutant("server-close-ignored", tag="life-cycle", breaks=["R17", "X7"])
class ServerCloseIgnored(Connection):
    """Skips the server's Close."""

    def close_asked(self, frame: Close) -> None:
        pass


@mutant("server-close-untold", tag="life-cycle", breaks=["R17", "X7"])
class ServerCloseUntold(Recovery):
    """Does not report that the server has closed the connection, and does not come back."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        if error.kind == "closed" and not self.runtime.is_closed:
            self.links.all.remove(link)
            for user in self.users_of(link):
                self.detach(user, error)
            return
        super().link_ended(link, error)


@mutant("close-without-goodbye", tag="wire", breaks=["R17", "X7"])
class CloseWithoutGoodbye(Link):
    """Ends the connection without a Close."""

    async def close(self, deadline: float) -> None:
        self.drop(ClientError("closed", "the client was closed"))


@mutant("close-waits-for-ever", tag="life-cycle", breaks=["R17", "X7"])
class StreamCloseWaitsForEver(StreamClient):
    """Closing has no time-out."""

    async def close(self, timeout: float | None = None) -> None:
        await super().close(10_000.0)


@mutant("unanswered-close-keeps-socket", tag="life-cycle", breaks=["R17", "X7"])
class UnansweredCloseKeepsSocket(Link):
    """Leaves the socket open when its Close is not answered."""

    async def close(self, deadline: float) -> None:
        wire = self._wire
        keeps = asyncio.get_running_loop().call_at(deadline - 0.01, self._let_go)
        await super().close(deadline)
        keeps.cancel()
        if wire is not None:
            wire.close()

    def _let_go(self) -> None:
        self._wire = None


@mutant("second-close-fails", tag="life-cycle", breaks=["R17"])
class SecondCloseFails(StreamClient):
    """Says Close again when it is closed twice, and waits for the answer."""

    async def close(self, timeout: float | None = None) -> None:
        if self._closing is not None:
            await asyncio.sleep(10_000.0)
        await super().close(timeout)


class _Draining(Consuming):
    """Delivers all that has come when a subscription ends."""

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        super().stop(subscription, True)

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        await super().settled(ended, math.inf)


@mutant("close-empties-the-queue", tag="life-cycle", breaks=["R9", "R17", "X7"], also=[_Draining])
class CloseEmptiesTheQueue(StreamClient):
    """Delivers everything that has come before it closes."""

    async def close(self, timeout: float | None = None) -> None:
        await super().close(10_000.0)


@mutant("surfaces-after-close", tag="data", breaks=["R9", "R17", "X7"])
class SurfacesAfterClose(Consuming):
    """Goes on delivering what has come after it is closed."""

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        super().stop(subscription, True)

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        self.subscriptions.difference_update(ended)


@mutant("crossing-close-waits", tag="life-cycle", breaks=["R17"])
class CrossingCloseWaits(Connection):
    """Waits for the answer to its Close although the server sent its own and ended the connection."""

    def close_asked(self, frame: Close) -> None:
        if not self.closing:
            super().close_asked(frame)

    def lost(self, now: float, problem: str) -> None:
        if not self.closing:
            super().lost(now, problem)


class _HardlyClosed(StreamClient):
    async def _close(self, deadline: float) -> None:
        await super()._close(deadline)
        self.runtime.is_closed = not self.links.is_reconnecting


@mutant("reconnects-after-close", tag="life-cycle", breaks=["R9", "X7"], also=[_HardlyClosed])
class ReconnectsAfterClose(Recovery):
    """Goes on reconnecting when it is closed meanwhile."""

    async def reconnect(self) -> None:
        work = super().reconnect()
        self.survivor = asyncio.get_running_loop().create_task(work)

    async def recover(self, user: User) -> None:
        user.is_closed = False
        self.survivors = asyncio.get_running_loop().create_task(super().recover(user))


@mutant("session-leaks-a-task", tag="life-cycle", breaks=["R17", "X9"])
class SessionLeaksATask(StreamClient):
    """Leaves a task for each session."""

    async def _close(self, deadline: float) -> None:
        await super()._close(deadline)
        self.runtime.tasks.spawn(self.linger())

    def abort(self) -> None:
        super().abort()
        self.runtime.tasks.spawn(self.linger())

    async def linger(self) -> None:
        """Do nothing."""
        await asyncio.sleep(10_000.0)


@mutant("closed-sockets-stay", tag="life-cycle", breaks=["R17", "X9"])
class ClosedSocketsStay(Link):
    """Sends Close, but leaves the socket to the server."""

    kept: list[Any] = []  # noqa: RUF012 - a leak

    def drop(self, error: ClientError) -> None:
        self.kept.append(self._wire)
        self._wire = None
        super().drop(error)

    def eof_received(self) -> bool:
        return True


@mutant("subscription-ends-quietly", tag="life-cycle", breaks=["R17", "X6"])
class SubscriptionEndsQuietly(Recovery):
    """Lets subscriptions of a stream that is gone end without a word."""

    def close_user(self, user: User, error: ClientError) -> None:
        if isinstance(user, Publisher):
            super().close_user(user, error)
            return
        user.is_closed = True
        self.client.consuming.stop(user)
        self.client.consuming.subscriptions.discard(user)


@mutant("publishes-behind-the-close", tag="life-cycle", breaks=["R17", "X7"])
class PublishesBehindTheClose(Publishing):
    """Publishes a message whose publisher was closed in the turn in which it became ready."""

    def check_wanted(self, publisher: Publisher) -> None:
        pass
