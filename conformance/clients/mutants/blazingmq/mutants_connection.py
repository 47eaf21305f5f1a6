"""Defects in connecting and negotiating (catalogue sections BMQ-1 and BMQ-5)."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import msgspec

from conformance.clients.adapter import kit
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.client import BlazingClient, Pauses
from conformance.clients.reference.blazingmq.handshake import Handshake
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.ops import BlazingOps
from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError
from fakebrokers.blazingmq.codes import Language
from fakebrokers.blazingmq.frames import BrokerResponse, ClientIdentity
from fakebrokers.blazingmq.schema import Status
from fakebrokers.core.frames import Frame, Malformed

HOURS_S = 10_000.0


@mutant("introduces-itself-twice", tag="wire", breaks=["B2"])
class IntroducesItselfTwice(Handshake):
    """Sends clientIdentity twice."""

    def start(self) -> None:
        super().start()
        super().start()


@mutant("names-its-own-language", tag="wire", breaks=["B2"])
class NamesItsOwnLanguage(Handshake):
    """Says a language for which the broker has no number."""

    def identity(self) -> ClientIdentity:
        return msgspec.structs.replace(super().identity(), sdk_language=max(Language) + 1)


@mutant("language-of-the-day", tag="wire", breaks=["B2"])
class LanguageOfTheDay(Handshake):
    """Says another language on every other connection."""

    number: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, int]] = WeakKeyDictionary()

    def identity(self) -> ClientIdentity:
        loop = asyncio.get_running_loop()
        self.number[loop] = self.number.get(loop, 0) + 1
        language = Language.E_CPP if self.number[loop] % 2 else Language.E_JAVA
        return msgspec.structs.replace(super().identity(), sdk_language=language)


@mutant("takes-any-broker-response", tag="life-cycle", breaks=["B2", "B19", "X5"])
class TakesAnyBrokerResponse(Handshake):
    """Does not look at the result of the negotiation."""

    def answered(self, frame: BrokerResponse) -> None:
        super().answered(BrokerResponse(Status(0, 0), broker_identity=frame.broker_identity))


@mutant("any-message-is-a-welcome", tag="life-cycle", breaks=["B2", "X5"])
class AnyMessageIsAWelcome(Handshake):
    """Takes the first message for brokerResponse, whatever it is."""

    def other(self, frame: Frame) -> None:
        self.answered(BrokerResponse(Status(0, 0)))


@mutant("no-limit-for-negotiation", tag="life-cycle", breaks=["B2", "B8", "X8"])
class NoLimitForNegotiation(Link):
    """Waits for brokerResponse without end."""

    async def open(self, endpoint: str, timeout: float) -> None:
        await super().open(endpoint, HOURS_S)


@mutant("unreadable-welcome-hangs", tag="life-cycle", breaks=["B2", "B19", "X5", "X8"])
class UnreadableWelcomeHangs(Link):
    """A brokerResponse that cannot be read makes connect hang."""

    is_stuck = False

    def malformed(self, frame: Malformed) -> None:
        if self.state == "new":
            self.is_stuck = True
        else:
            super().malformed(frame)

    async def open(self, endpoint: str, timeout: float) -> None:
        try:
            await super().open(endpoint, timeout)
        except ClientError:
            if self.is_stuck:
                await asyncio.Event().wait()
            raise


@mutant("unreadable-welcome-is-waited-out", tag="life-cycle", breaks=["B2", "B19", "X5"])
class UnreadableWelcomeIsWaitedOut(Link):
    """After a brokerResponse that cannot be read connect waits until its time is over."""

    def malformed(self, frame: Malformed) -> None:
        if self.state != "new":
            super().malformed(frame)


@mutant("early-heartbeat-is-a-bug", tag="life-cycle", breaks=["B2", "B15"])
class EarlyHeartbeatIsABug(Link):
    """A heartbeat before brokerResponse makes the connect fail for no reason that it could name."""

    def heartbeat(self) -> None:
        if self.state == "new":
            self.handshake.fail(ClientError("internal", "unexpected state"))
        else:
            super().heartbeat()


@mutant("refused-connect-is-internal", tag="wording", breaks=["B19", "X5", "X6"])
class RefusedConnectIsInternal(Link):
    """Calls a connection that cannot be made an internal error."""

    async def open(self, endpoint: str, timeout: float) -> None:
        try:
            await super().open(endpoint, timeout)
        except ClientError as error:
            kind = "internal" if error.kind == "connection" else error.kind
            raise ClientError(kind, error.text, code=error.code) from None


@mutant("hammers-the-first-connect", tag="life-cycle", breaks=["B19", "X6"])
class HammersTheFirstConnect(BlazingClient):
    """Tries the first connect again and again without a pause."""

    async def connect(self, timeout: float | None) -> None:
        deadline = self.runtime.clock.deadline(DEFAULT_TIMEOUT_S if timeout is None else timeout)
        for _ in range(20):
            try:
                return await super().connect(deadline - self.runtime.clock.now())
            except ClientError as error:
                if error.kind != "connection":
                    raise
        raise ClientError("connection", "tried 20 times")


@mutant("connects-again", tag="life-cycle", breaks=["B1", "X7"])
class ConnectsAgain(BlazingOps):
    """A second connect of a session makes a second connection."""

    @kit.op("connect")
    async def connect(
        self, session: str, endpoints: Any, options: Any = None, timeout_ms: float | None = None
    ) -> None:
        await self.adapter.connect(session, endpoints, options, timeout_ms)


@mutant("never-reconnects", tag="life-cycle", breaks=["B2", "B4", "B5", "B19", "X6", "X4", "X9", "X11"])
class BlazingNeverReconnects(BlazingClient):
    """Says that it reconnects, and does not."""

    async def reconnect(self) -> None:
        return


@mutant("losses-go-untold", tag="life-cycle", breaks=["B16", "B19", "X6", "X3", "X2"])
class LossesGoUntold(BlazingClient):
    """Does not report that the connection was lost."""

    def loss_reported(self, error: ClientError) -> None:
        return


@mutant("tells-a-loss-twice", tag="life-cycle", breaks=["B16", "X6"])
class TellsALossTwice(BlazingClient):
    """Reports each loss twice."""

    def loss_reported(self, error: ClientError) -> None:
        super().loss_reported(error)
        super().loss_reported(error)


@mutant("reconnects-at-once", tag="life-cycle", breaks=["B19", "X6"])
class ReconnectsAtOnce(Pauses):
    """Tries to reconnect twenty times a second."""

    def delay(self) -> float:
        return 0.05


@mutant("pauses-never-grow", tag="life-cycle", breaks=["B19", "X6"])
class PausesNeverGrow(Pauses):
    """Makes the same short pause before each attempt, however often connections have ended at once."""

    @property
    def grown_s(self) -> float:
        return self.first_s


@mutant("pauses-never-shrink", tag="life-cycle", breaks=["B19", "X6"])
class PausesNeverShrink(Pauses):
    """A success makes the next pause longer still."""

    def reset(self) -> None:
        self.failures += 3
        self.longest_s *= 4


@mutant("keeps-the-socket", tag="life-cycle", breaks=["B2", "B8", "B18", "X7", "X9", "X2"], aims=["BMQ-6.08"])
class KeepsTheSocket(Link):
    """Never closes its sockets."""

    def release(self) -> None:
        return
