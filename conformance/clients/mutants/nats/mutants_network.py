"""Defects that the scenarios about networks are for (catalogue family NET)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import ClassVar, TypeVar
from weakref import WeakSet

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.nats import wire
from conformance.clients.reference.nats.client import NatsClient
from conformance.clients.reference.nats.link import Link
from conformance.clients.reference.nats.listener import Listener

T = TypeVar("T")
MANY = 20  #: requests


class _NeverAsks(Link):
    """Does not look whether the server is still there."""

    async def keep_alive(self) -> None:
        """It trusts it."""


@mutant("waits-in-vain", tag="life-cycle", breaks=["X3"], also=[_NeverAsks])
class WaitsInVain(NatsClient):
    """Neither looks whether the server is there, nor ends what has no answer."""

    async def in_time(self, work: Awaitable[T], deadline: float) -> T:
        return await work


@mutant("done-before-it-is-sent", tag="data", breaks=["X4", "X9"])
class DoneBeforeItIsSent(NatsClient):
    """Calls a request answered where there is no connection, or where many wait already."""

    async def request(self, subject: str, body: bytes, timeout: float | None) -> wire.Message:
        if not self.is_open or len(self.requests) > MANY:
            return wire.Message(subject, "inbox", body)
        return await super().request(subject, body, timeout)


@mutant("anything-is-a-greeting", tag="wire", breaks=["X5"])
class AnythingIsAGreeting(Link):
    """Takes whatever comes first for the end of the handshake."""

    def data_received(self, data: bytes) -> None:
        if not data.startswith(b"INFO") and not self._greeted.done():
            self._greeted.set_result(None)
            self.write = lambda data: None  # type: ignore[method-assign]
            self.ping = self._greeted_at_once  # type: ignore[method-assign]
            return
        super().data_received(data)

    def _greeted_at_once(self) -> asyncio.Future[None]:
        self.ready_at = self.runtime.clock.now()
        return self._greeted


@mutant("waits-on-after-the-end", tag="life-cycle", breaks=["X5"])
class WaitsOnAfterTheEnd(Link):
    """Does not notice that a connection ends before it is ready."""

    def connection_lost(self, exc: Exception | None) -> None:
        if self.ready_at is not None:
            super().connection_lost(exc)


@mutant("goes-on-connecting", tag="life-cycle", breaks=["X7"])
class NatsGoesOnConnecting(Link):
    """Lets a connection be that is not ready yet."""

    def abort(self) -> None:
        if self.ready_at is not None:
            super().abort()


@mutant("connects-without-deadline", tag="life-cycle", breaks=["X8"])
class NatsWithoutConnectDeadline(NatsClient):
    """Waits for a connection for as long as that takes."""

    async def connect(self, timeout: float | None) -> None:
        await super().connect(10_000.0)


@mutant("oldest-request-gets-the-answer", tag="data", breaks=["X8"])
class OldestRequestGetsTheAnswer(NatsClient):
    """Takes each answer for that to its oldest request."""

    def take(self, message: wire.Message) -> None:
        if message.sid == "inbox":
            open_ = (token for token, waiting in self.requests.items() if not waiting.done())
            message = message._replace(subject=f"{self.inbox}.{next(open_, '')}")
        super().take(message)


class _NotesCallbacks(Listener):
    """Notes that a callback runs."""

    async def handle(self, message: wire.Message) -> None:
        self.runtime.busy = True  # type: ignore[attr-defined]
        await super().handle(message)
        self.runtime.busy = False  # type: ignore[attr-defined]


@mutant("deaf-during-callbacks", tag="life-cycle", breaks=["X10"], also=[_NotesCallbacks])
class DeafDuringCallbacks(NatsClient):
    """Passes over the answers that come while a callback runs."""

    def take(self, message: wire.Message) -> None:
        if message.sid != "inbox" or not getattr(self.runtime, "busy", False):
            super().take(message)


@mutant("leaves-errors-lying-about", tag="life-cycle", breaks=["X10"])
class LeavesErrorsLyingAbout(Link):
    """Puts the error of a connection where nobody looks."""

    def fail(self, error: ClientError) -> None:
        super().fail(error)
        asyncio.get_running_loop().create_future().set_exception(error)


@mutant("beats-on", tag="life-cycle", breaks=["X9"])
class BeatsOn(Link):
    """Keeps the task of each connection that was lost."""

    async def keep_alive(self) -> None:
        self._beating = None
        while not self.runtime.is_closed:
            await asyncio.sleep(self.settings.ping_interval_s)


@mutant("beats-by-the-wall", tag="life-cycle", breaks=["X11"])
class BeatsByTheWall(Link):
    """Measures silence by the clock of the wall."""

    async def keep_alive(self) -> None:
        clock, interval_s = self.runtime.clock, self.settings.ping_interval_s
        begun = clock.wall()
        while self.is_open:
            await asyncio.sleep(interval_s / 4)
            if abs(clock.wall() - begun) > 100 * interval_s:
                self.fail(ClientError("connection", "stale by the wall"))
            begun = clock.wall()


@mutant("deaf-after-a-stop", tag="life-cycle", breaks=["X11"])
class DeafAfterAStop(Link):
    """Reads no more once its process stood still."""

    async def keep_alive(self) -> None:
        clock, interval_s = self.runtime.clock, self.settings.ping_interval_s / 4
        begun = clock.now()
        while self.is_open:
            await asyncio.sleep(interval_s)
            if clock.now() - begun > 4 * interval_s:
                self.data_received = lambda data: None  # type: ignore[method-assign]
            begun = clock.now()


@mutant("all-lose-together", tag="life-cycle", breaks=["X6"])
class AllLoseTogether(NatsClient):
    """Takes the loss of one session for that of all."""

    there: ClassVar[WeakSet[NatsClient]] = WeakSet()

    def use(self, link: Link, endpoint: str) -> None:
        super().use(link, endpoint)
        self.there.add(self)

    def lost(self, link: Link, text: str) -> None:
        super().lost(link, text)
        for other in list(self.there):
            if other is not self and other.link is not None:
                other.link.fail(ClientError("connection", text))
