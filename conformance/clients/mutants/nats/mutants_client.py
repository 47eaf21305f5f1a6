"""Defects of sessions, and of what is published and asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.nats import wire
from conformance.clients.reference.nats.client import NatsClient
from conformance.clients.reference.nats.link import Link

T = TypeVar("T")
HASTE_S = 0.5


@mutant("stays-unsubscribed", tag="data", breaks=["X6", "S4"])
class StaysUnsubscribed(NatsClient):
    """Comes back after a loss, and does not subscribe again."""

    def use(self, link: Link, endpoint: str) -> None:
        listeners, self.listeners = self.listeners, {}
        super().use(link, endpoint)
        self.listeners = listeners


@mutant("subscribes-twice", tag="data", breaks=["X6", "S4"])
class NatsSubscribesTwice(NatsClient):
    """Makes its subscriptions twice after a loss."""

    def use(self, link: Link, endpoint: str) -> None:
        super().use(link, endpoint)
        for listener in list(self.listeners.values()):
            sid = f"{listener.sid}-again"
            self.listeners[sid] = listener
            link.write(wire.subscribe(listener.subject, sid, listener.queue))


@mutant("stays-away-after-a-loss", tag="life-cycle", breaks=["X6", "S4"])
class NatsStaysAwayAfterALoss(NatsClient):
    """Does not connect again."""

    async def come_back(self) -> None:
        """It stays away."""


@mutant("comes-back-after-the-close", tag="life-cycle", breaks=["X7"])
class ComesBackAfterTheClose(NatsClient):
    """Connects in the background, whatever the application does meanwhile."""

    async def come_back(self) -> None:
        self._hidden = asyncio.get_running_loop().create_task(super().come_back())
        await asyncio.shield(self._hidden)


@mutant("knows-only-what-it-was-given", tag="life-cycle", breaks=["S7"])
class KnowsOnlyWhatItWasGiven(NatsClient):
    """Passes over the servers that INFO names."""

    def informed(self, info: Mapping[str, Any]) -> None:
        """It listens to nothing."""


@mutant("only-the-first-server", tag="life-cycle", breaks=["X6"])
class OnlyTheFirstServer(NatsClient):
    """Knows one server, whatever list it was given."""

    def servers(self) -> list[str]:
        return super().servers()[:1]


@mutant("writes-whatever-its-size", tag="wire", breaks=["S2", "X12"])
class WritesWhateverItsSize(NatsClient):
    """Passes over the largest payload that the server has named."""

    async def write_message(self, subject: str, body: bytes, deadline: float, reply: str = "") -> Link:
        self.need().info.pop("max_payload", None)
        return await super().write_message(subject, body, deadline, reply)


@mutant("a-status-is-no-answer", tag="data", breaks=["S9"])
class AStatusIsNoAnswer(NatsClient):
    """Waits on after the server has said that nobody listens."""

    def take(self, message: wire.Message) -> None:
        if not message.status:
            super().take(message)


@mutant("next-answer-for-the-next-request", tag="data", breaks=["S10", "X8"])
class NextAnswerForTheNextRequest(NatsClient):
    """Takes an answer that no request waits for any more for that of its oldest request."""

    def take(self, message: wire.Message) -> None:
        token = message.subject.removeprefix(f"{self.inbox}.")
        if message.sid == "inbox" and token not in self.requests:
            oldest = next(iter(self.requests), token)
            message = message._replace(subject=f"{self.inbox}.{oldest}")
        super().take(message)


@mutant("half-a-second-for-answers", tag="life-cycle", breaks=["X1", "X8"])
class NatsHalfASecondForAnswers(NatsClient):
    """Waits half a second for an answer, whatever the time-out says."""

    async def in_time(self, work: Awaitable[T], deadline: float) -> T:
        return await super().in_time(work, min(deadline, self.runtime.clock.now() + HASTE_S))


@mutant("waits-for-ever", tag="life-cycle", breaks=["X8", "X5"])
class WaitsForEver(NatsClient):
    """Has no deadline for an answer."""

    async def in_time(self, work: Awaitable[T], deadline: float) -> T:
        return await work


@mutant("requests-outlive-their-connection", tag="life-cycle", breaks=["X6", "X7", "X8"])
class NatsRequestsOutliveTheirConnection(NatsClient):
    """Lets requests wait for answers that cannot come any more."""

    def end_requests(self, error: ClientError) -> None:
        """They wait."""


@mutant("keeps-answers-to-nobody", tag="life-cycle", breaks=["X9"])
class KeepsAnswersToNobody(NatsClient):
    """Keeps what nobody waits for."""

    def take(self, message: wire.Message) -> None:
        if message.sid == "inbox" and message.subject.removeprefix(f"{self.inbox}.") not in self.requests:
            self.kept: list[bytes] = getattr(self, "kept", [])
            self.kept.append(message.payload)
            self.buffered_bytes += len(message.payload)
        super().take(message)


@mutant("drain-is-close", tag="data", breaks=["S11"])
class DrainIsClose(NatsClient):
    """Closes where it should drain."""

    async def drain(self, timeout: float | None) -> None:
        await self.close(timeout)


@mutant("unsubscribes-instead-of-draining", tag="data", breaks=["S11"])
class UnsubscribesInsteadOfDraining(NatsClient):
    """Forgets what waits for a callback when a subscription is drained."""

    async def unsubscribe(self, listener: Any, *, drain: bool, timeout: float | None) -> None:
        await super().unsubscribe(listener, drain=False, timeout=timeout)


@mutant("gives-up-at-the-first-refusal", tag="life-cycle", breaks=["S3", "S4"])
class GivesUpAtTheFirstRefusal(NatsClient):
    """Takes the end of a login for the end of the session."""

    def lost(self, link: Link, text: str) -> None:
        if "Expired" in link.complaint:
            self.settings.reconnects = False
        super().lost(link, text)


@mutant("asks-before-it-sends", tag="data", breaks=["S8"])
class AsksBeforeItSends(NatsClient):
    """Sends what is published a moment later, and a PING at once."""

    async def write_message(self, subject: str, body: bytes, deadline: float, reply: str = "") -> Link:
        if reply:
            return await super().write_message(subject, body, deadline, reply)
        data = wire.publish(subject, body)
        link = self.need()
        asyncio.get_running_loop().call_later(0.01, link.write, data)
        return link
