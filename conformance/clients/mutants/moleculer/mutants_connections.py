"""Defects about connections: making them, losing them, and ending them (catalogue family NET)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, ClassVar
from weakref import WeakSet

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Backoff, ClientError, Wire
from conformance.clients.reference.moleculer.bus import Bus
from conformance.clients.reference.moleculer.caller import Caller, Pending
from conformance.clients.reference.moleculer.client import MoleculerClient
from conformance.clients.reference.moleculer.mesh import Mesh

CROWDED = 100
PAUSE_S = 2.0


@mutant("remembers-half-a-message", tag="wire", breaks=["X2", "X5"])
class RemembersHalfAMessage(Bus):
    """Reads what comes on a new connection as the rest of what was incomplete on the lost one."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.buffer += self._runtime.__dict__.get("half", b"")

    @property
    def buffer(self) -> bytearray:
        """Bytes of a message that is incomplete."""
        found: bytearray = self.codec._buffer  # type: ignore[attr-defined]  # all codecs have one
        return found

    @buffer.setter
    def buffer(self, data: bytearray) -> None:
        self.codec._buffer = data  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self._runtime.__dict__.setdefault("half", bytes(self.buffer))
        super().connection_lost(exc)


@mutant("flushes-before-it-goes", tag="life-cycle", breaks=["X3", "X7"])
class FlushesBeforeItGoes(MoleculerClient):
    """Waits for a word of the server before it stops."""

    async def send_close(self, patience_s: float) -> None:
        assert isinstance(self.post.bus, Bus)
        await self.post.bus.synced()
        await super().send_close(patience_s)


@mutant("crowded-calls-are-a-loss", tag="life-cycle", breaks=["X4"])
class CrowdedCallsAreALoss(Caller):
    """Gives the connection up when a hundred calls wait for their answers."""

    async def answer_of(self, pending: Any, limit_s: float) -> Any:
        bus = self._post.bus
        if len(self.pending) > CROWDED and bus is not None and bus.is_open:
            bus.abort()
            self._runtime.callbacks.report("connection_lost", "the server is too slow")
        return await super().answer_of(pending, limit_s)


@mutant("comes-back-at-once", tag="life-cycle", breaks=["X5", "X6"])
class ComesBackAtOnce(Backoff):
    """Tries to connect a hundred times a second."""

    def delay(self) -> float:
        return 0.01


@mutant("pauses-never-grow", tag="life-cycle", breaks=["X6"])
class PausesOnTheBusNeverGrow(Backoff):
    """Makes the same short pause before each attempt, however often connections have ended at once."""

    @property
    def grown_s(self) -> float:
        return self.first_s


@mutant("first-server-only", tag="life-cycle", breaks=["X6"])
class FirstServerOnly(Bus):
    """Connects to the first server of its list only."""

    async def _dial(self) -> Wire:
        return await self._runtime.network.dial(self._settings.endpoints[0], lambda: self)


@mutant("first-and-last-server", tag="life-cycle", breaks=["X6"])
class FirstAndLastServer(Bus):
    """Connects to the first and to the last server of its list, and to none between them."""

    async def _dial(self) -> Wire:
        first, *_, last = 2 * self._settings.endpoints
        with suppress(OSError):
            return await self._runtime.network.dial(first, lambda: self)
        return await self._runtime.network.dial(last, lambda: self)


@mutant("goes-on-connecting", tag="life-cycle", breaks=["X7"])
class GoesOnConnecting(MoleculerClient):
    """Connects on after it was closed."""

    async def connect(self, timeout: float | None = None) -> None:
        await self.runtime.tasks.within(timeout, self._start())


@mutant("calls-outlive-stop", tag="life-cycle", breaks=["X7"])
class CallsOutliveStop(Caller):
    """Calls wait for their time-out though the node was stopped."""

    def end(self) -> None:
        """They wait on."""


@mutant("parked-calls-have-no-deadline", tag="life-cycle", breaks=["X9"])
class ParkedCallsHaveNoDeadline(Caller):
    """Calls that are made without a connection wait for one, whatever their time-out says."""

    async def call(self, action: str, params: Any = None, **more: Any) -> Any:
        while self._post.bus is None or not self._post.bus.is_open:
            await asyncio.sleep(0.05)
        return await super().call(action, params, **more)


@mutant("reconnect-leaks-a-task", tag="life-cycle", breaks=["X9"])
class MoleculerReconnectLeaksATask(MoleculerClient):
    """Beats once more with each new connection."""

    async def rejoin(self) -> None:
        await super().rejoin()
        self.runtime.tasks.spawn(self.heartbeats())


@mutant("lost-tasks", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class MoleculerLostTasks(MoleculerClient):
    """Each lost connection leaves a failed task that nothing awaits."""

    def lost_bus(self, reason: str) -> None:
        super().lost_bus(reason)
        asyncio.get_running_loop().create_task(self.fail(reason))

    async def fail(self, reason: str) -> None:
        """It is reported to no one."""
        raise RuntimeError(reason)


@mutant("one-loss-is-all", tag="life-cycle", breaks=["X6"])
class MoleculerOneLossIsAll(MoleculerClient):
    """The loss of one node's connection ends those of all other nodes of the process."""

    everyone: ClassVar[WeakSet[MoleculerOneLossIsAll]] = WeakSet()

    async def connect(self, timeout: float | None = None) -> None:
        self.everyone.add(self)
        await super().connect(timeout)

    def lost_bus(self, reason: str) -> None:
        super().lost_bus(reason)
        for other in list(self.everyone):
            if other is not self and other.is_open and other.post.bus is not None:
                other.post.bus.abort()
                MoleculerClient.lost_bus(other, reason)


@mutant("a-pause-is-the-end", tag="life-cycle", breaks=["X11"], aims=["NET-3.11"])
class MoleculerAPauseIsTheEnd(MoleculerClient):
    """A process that was stopped for two seconds never works again."""

    async def join(self) -> None:
        await super().join()
        self.runtime.tasks.spawn(self.look())

    async def look(self) -> None:
        """Look how long a short time is."""
        clock = self.runtime.clock
        while True:
            begun = clock.now()
            await asyncio.sleep(0.1)
            if clock.now() - begun > PAUSE_S:
                self.runtime.callbacks.trouble("other", ClientError("closed", "the clock has jumped"))
                self.abort()


@mutant("balanced-topics-are-lost", tag="life-cycle", breaks=["M8"])
class BalancedTopicsAreLost(MoleculerClient):
    """After a loss it does not subscribe again to the topics whose receiver the server chooses."""

    async def report_all(self) -> None:
        bus = self.post.bus
        if bus is None or not bus.is_open or self._joins < 2:
            await super().report_all()
        else:
            self.send_info("", self.infos())

    _joins = 0

    async def enter(self, bus: Bus | Mesh) -> None:
        self._joins += 1
        await super().enter(bus)


@mutant("announces-while-it-stops", tag="life-cycle", breaks=["M8"])
class AnnouncesWhileItStops(MoleculerClient):
    """Lets an announcement that is under way come after the one that it offers nothing any more."""

    async def send_close(self, patience_s: float) -> None:
        self._announcing = None
        await super().send_close(patience_s)


@mutant("names-within-names-are-gone", tag="life-cycle", breaks=["M9", "X8"])
class NamesWithinNamesAreGone(Caller):
    """When a node leaves, calls to nodes fail whose ids contain its id."""

    def concerns(self, pending: Pending, peer: str) -> bool:
        return peer in pending.target or peer == pending.answered_by


@mutant("unjoined-connection-stays", tag="life-cycle", breaks=["X9"])
class UnjoinedConnectionStays(Bus):
    """Does not end the connection of a connect that is given up."""

    def abort(self) -> None:
        if self.is_joined:
            super().abort()


@mutant("failed-servers-are-forgotten", tag="life-cycle", breaks=["X6"])
class FailedServersAreForgotten(Bus):
    """Takes a server out of its list when it cannot be reached."""

    async def _dial(self) -> Wire:
        failed: set[str] = self._runtime.__dict__.setdefault("failed", set())
        for endpoint in self._settings.endpoints:
            if endpoint not in failed:
                try:
                    return await self._runtime.network.dial(endpoint, lambda: self)
                except OSError:
                    failed.add(endpoint)
        raise ConnectionRefusedError("there is no server in the list")


@mutant("stays-with-its-server", tag="life-cycle", breaks=["X6"])
class StaysWithItsServer(Bus):
    """Connects again to that server only with which it was connected first."""

    async def _dial(self) -> Wire:
        chosen: dict[str, str] = self._runtime.__dict__.setdefault("chosen", {})
        if chosen:
            return await self._runtime.network.dial(chosen["first"], lambda: self)
        for endpoint in self._settings.endpoints:
            with suppress(OSError):
                wire = await self._runtime.network.dial(endpoint, lambda: self)
                chosen["first"] = endpoint
                return wire
        raise ConnectionRefusedError("there is no server")
