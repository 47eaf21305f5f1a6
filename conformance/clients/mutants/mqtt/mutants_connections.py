"""Defects in connections: what is read, who is let in, keep alives, and coming back."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar
from weakref import WeakSet

from msgspec.structs import replace

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Backoff, ClientError, Clock, Runtime
from conformance.clients.reference.mqtt.client import MqttClient
from conformance.clients.reference.mqtt.link import Link
from conformance.clients.reference.mqtt.subscriptions import Subscriptions
from fakebrokers.core.frames import Frame
from fakebrokers.mqtt.codec import MqttCodec
from fakebrokers.mqtt.frames import Connack, Disconnect, Puback, Suback

PAUSE_S = 2.0
HASTE_S = 0.4

# bytes


@mutant("one-read-one-packet", tag="data", breaks=["X1"])
class OneReadOnePacket(Link):
    """Takes what is read at once for whole packets, and forgets the rest."""

    def data_received(self, data: bytes) -> None:
        self.codec = MqttCodec()
        super().data_received(data)


@mutant("one-puback-of-a-read", tag="data", breaks=["X1"])
class OnePubackOfARead(Link):
    """Overlooks all PUBACKs of a read but the first."""

    came = 0

    def data_received(self, data: bytes) -> None:
        self.came = 0
        super().data_received(data)

    def handle(self, frame: Frame) -> None:
        self.came += isinstance(frame, Puback)
        if self.came < 2 or not isinstance(frame, Puback):
            super().handle(frame)


@mutant("fills-up-with-zeros", tag="data", breaks=["X2"])
class FillsUpWithZeros(Link):
    """Reads the first half of a packet as a whole one when the connection ends."""

    def connection_lost(self, error: Exception | None) -> None:
        for _ in range(64):
            if self.codec.partial and self.state != "ended":
                self.data_received(b"\0")
        if self.state == "open" and not self.done.cancelled():
            asyncio.get_running_loop().call_soon(super().connection_lost, error)
        else:
            super().connection_lost(error)


@mutant("any-byte-lets-it-in", tag="life-cycle", breaks=["X5", "Q1"])
class AnyByteLetsItIn(Link):
    """Takes whatever comes first for CONNACK."""

    def data_received(self, data: bytes) -> None:
        if self.state == "new":
            self.let_in(Connack())
            self.codec = MqttCodec()
        else:
            super().data_received(data)

    def end(self, error: ClientError) -> None:
        if error.kind != "connection" or self.heard_at:
            super().end(error)


@mutant("bad-servers-are-shunned", tag="life-cycle", breaks=["X5"], aims=["NET-4.07"])
class MqttBadServersAreShunned(Link):
    """Never again connects once something wrong has come."""

    bad: ClassVar[list[str]] = []

    async def open(self, endpoint: str, timeout: float) -> None:
        if endpoint in self.bad:
            raise ClientError("connection", "this server is bad", definite=True)
        self.endpoint = endpoint
        await super().open(endpoint, timeout)

    def end(self, error: ClientError) -> None:
        if error.kind in ("refused", "auth", "protocol"):
            self.bad.append(self.endpoint)
        super().end(error)


# CONNACK and keep alive


@mutant("refusals-let-it-in", tag="data", breaks=["Q1"])
class RefusalsLetItIn(Link):
    """Does not look at the code of CONNACK."""

    def let_in(self, frame: Connack) -> None:
        super().let_in(replace(frame, code=0))


@mutant("refusal-without-code", tag="wording", breaks=["Q1"])
class RefusalWithoutCode(Link):
    """Does not say why it was refused."""

    def end(self, error: ClientError) -> None:
        error.code = None
        super().end(error)


@mutant("never-asks", tag="life-cycle", breaks=["Q8", "X3"])
class NeverAsks(Link):
    """Gives no sign of life, and gives up no silent server."""

    async def watch(self, keep_alive: float) -> None:
        return


@mutant("waits-for-a-silent-server", tag="life-cycle", breaks=["Q8", "X3"])
class MqttWaitsForASilentServer(Link):
    """Sends PINGREQ, and does not mind whether PINGRESP comes."""

    async def watch(self, keep_alive: float) -> None:
        while keep_alive and self.state == "open":
            await asyncio.sleep(keep_alive * 0.75)
            self.ping()


@mutant("impatient", tag="life-cycle", breaks=["X1", "X3", "X4"])
class ImpatientForPackets(Link):
    """Gives up a server that does not answer a PINGREQ within 400 ms."""

    reads = 0

    async def watch(self, keep_alive: float) -> None:
        while self.state == "open":
            before = self.reads
            self.ping()
            await asyncio.sleep(HASTE_S)
            if self.reads == before:
                self.end(ClientError("connection", "the server is slow"))

    def data_received(self, data: bytes) -> None:
        self.reads += 1
        super().data_received(data)


@mutant("connects-without-an-end", tag="life-cycle", breaks=["X8"], aims=["NET-2.12"])
class ConnectsWithoutAnEnd(Link):
    """A connect has no deadline."""

    async def open(self, endpoint: str, timeout: float) -> None:
        await super().open(endpoint, 10_000.0)


@mutant("requests-without-an-end", tag="life-cycle", breaks=["X8"])
class RequestsWithoutAnEnd(Link):
    """A request waits for its answer for ever."""

    async def ask(self, make: Any, timeout: float, late: Any = None) -> Any:
        return await super().ask(make, 10_000.0, late)


class _PatientClient(MqttClient):
    async def publish(
        self, topic: str, payload: bytes, qos: int, *, retain: bool, timeout: float
    ) -> int | None:
        return await super().publish(topic, payload, qos, retain=retain, timeout=10_000.0)


@mutant("waits-whatever-happens", tag="life-cycle", breaks=["X3", "X8"], also=[_PatientClient])
class WaitsWhateverHappens(Link):
    """Gives up no silent server, and ends no op by its deadline."""

    async def watch(self, keep_alive: float) -> None:
        return

    async def ask(self, make: Any, timeout: float, late: Any = None) -> Any:
        return await super().ask(make, 10_000.0, late)


class _KeepingLink(Link):
    def answered(self, frame: Any) -> None:
        if frame.packet_id not in self.waiting:
            self.owner.__dict__.setdefault("kept", []).append(frame)
        super().answered(frame)


@mutant("strange-answers-are-kept", tag="life-cycle", breaks=["X9"], aims=["NET-3.05"], also=[_KeepingLink])
class StrangeAnswersAreKept(MqttClient):
    """Keeps answers to no request."""

    @property
    def buffered_bytes(self) -> int:
        return super().buffered_bytes + 1000 * len(self.__dict__.get("kept", ()))


@mutant("a-pause-is-the-end", tag="life-cycle", breaks=["X11"], aims=["NET-3.11"])
class MqttAPauseIsTheEnd(Link):
    """A process that was stopped for two seconds never works again."""

    async def open(self, endpoint: str, timeout: float) -> None:
        await super().open(endpoint, timeout)
        self.owner.runtime.tasks.spawn(self.look())

    async def look(self) -> None:
        """Look how long a short time is."""
        clock, client = self.owner.runtime.clock, self.owner
        while self.state == "open" and isinstance(client, MqttClient):
            begun = clock.now()
            await asyncio.sleep(0.1)
            if clock.now() - begun > PAUSE_S:
                client.finish(ClientError("closed", "the clock has jumped"))


@mutant("time-by-wall-clock", tag="life-cycle", breaks=["X11"])
class MqttTimeByWallClock(Clock):
    """Measures time with the wall clock."""

    def now(self) -> float:
        return super().now() + self.wrong_by_s

    def loop_time(self, moment: float) -> float:
        return moment - self.wrong_by_s


# closing and coming back


@mutant("no-disconnect", tag="wire", breaks=["Q11", "X7"])
class NoDisconnect(Link):
    """Ends its connection without DISCONNECT."""

    def send(self, frame: Frame) -> None:
        if not isinstance(frame, Disconnect):
            super().send(frame)


@mutant("comes-back-after-close", tag="life-cycle", breaks=["X7"])
class MqttComesBackAfterClose(MqttClient):
    """Goes on with a reconnect after it was closed."""

    async def reconnect(self) -> None:
        await asyncio.shield(asyncio.ensure_future(self.for_ever()))

    async def for_ever(self) -> None:
        """Whatever happens to the client."""
        while self.link is None:
            await asyncio.sleep(1.0)
            self.runtime.is_closed, was_closed = False, self.runtime.is_closed
            try:
                await self.dial(5.0)
            except ClientError:
                self.runtime.is_closed = was_closed


@mutant("close-waits-for-connect", tag="life-cycle", breaks=["X7"])
class CloseWaitsForConnect(MqttClient):
    """A close leaves alone what is being connected."""

    def finish(self, error: ClientError) -> None:
        self._dialled = None
        super().finish(error)


@mutant("comes-back-once", tag="life-cycle", breaks=["X6"])
class ComesBackOnce(MqttClient):
    """Is over when its first attempt to come back fails."""

    def is_final(self, error: ClientError) -> bool:
        return True


@mutant("comes-back-twice", tag="life-cycle", breaks=["X6", "X9"])
class ComesBackTwice(MqttClient):
    """Makes two connections for one that was lost."""

    async def reconnect(self) -> None:
        await super().reconnect()
        if self.is_open:
            spare = Link(self, replace(self.connecting, client_id=f"{self.runtime.random.random()}"))
            await spare.open(self.endpoints[0], 5.0)


@mutant("first-address-only", tag="life-cycle", breaks=["X6"])
class MqttFirstAddressOnly(MqttClient):
    """Knows the first of its addresses."""

    def __init__(self, runtime: Runtime, endpoints: list[str], options: Any) -> None:
        super().__init__(runtime, endpoints[:1], options)


@mutant("will-for-the-first-time", tag="wire", breaks=["Q11"])
class WillForTheFirstTime(MqttClient):
    """Has its will in its first CONNECT only."""

    def resumed(self, link: Link) -> None:
        self.connecting = replace(self.connecting, will=None)
        super().resumed(link)


@mutant("clean-again", tag="data", breaks=["Q7", "Q3"])
class CleanAgain(MqttClient):
    """Comes back with a clean session, whatever was ordered."""

    def resumed(self, link: Link) -> None:
        self.connecting = replace(self.connecting, clean=True)
        super().resumed(link)


@mutant("reconnect-leaks-a-task", tag="life-cycle", breaks=["X9"])
class MqttReconnectLeaksATask(MqttClient):
    """Leaves a task for each reconnect."""

    async def reconnect(self) -> None:
        self.runtime.tasks.spawn(asyncio.sleep(10_000.0))
        await super().reconnect()


@mutant("lost-tasks", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class MqttLostTasks(MqttClient):
    """Each lost connection leaves a failed task that nothing awaits."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        asyncio.get_running_loop().create_task(self.fail())

    async def fail(self) -> None:
        """It is reported to no one."""
        raise RuntimeError("the connection is gone")


@mutant("one-loss-is-all", tag="life-cycle", breaks=["X6"])
class MqttOneLossIsAll(MqttClient):
    """The loss of one session's connection ends those of all others."""

    everyone: ClassVar[WeakSet[MqttOneLossIsAll]] = WeakSet()

    async def connect(self, timeout: float | None) -> None:
        self.everyone.add(self)
        await super().connect(timeout)

    def link_ended(self, link: Link, error: ClientError) -> None:
        was_ours = link is self.link and not self.runtime.is_closed
        super().link_ended(link, error)
        for other in list(self.everyone) if was_ours else ():
            if other.link is not None:
                other.link.end(error)


@mutant("pauses-are-years", tag="life-cycle", breaks=["X6"])
class PausesAreYears(Backoff):
    """Waits ten times as long before each attempt."""

    def delay(self) -> float:
        pause_s: float = 100.0 * 10.0**self.failures
        return pause_s


# subscriptions on the wire


@mutant("refused-is-granted", tag="data", breaks=["Q2"])
class RefusedIsGranted(Subscriptions):
    """Takes any SUBACK for a yes."""

    def check(self, answer: Suback) -> None:
        return


@mutant("reserved-is-granted", tag="data", breaks=["Q2"])
class ReservedIsGranted(Subscriptions):
    """Takes only 0x80 for a no."""

    def check(self, answer: Suback) -> None:
        if answer.codes[:1] == (0x80,):
            super().check(answer)


@mutant("forgets-subscriptions", tag="data", breaks=["Q7", "X6"])
class ForgetsSubscriptions(Subscriptions):
    """Subscribes to nothing again."""

    async def restore(self, link: Link) -> None:
        return


@mutant("trusts-its-session", tag="data", breaks=["Q7"])
class TrustsItsSession(Subscriptions):
    """Takes a session that should last for one that has."""

    async def restore(self, link: Link) -> None:
        if link.connect.clean:
            await super().restore(link)


@mutant("subscribes-twice", tag="data", breaks=["Q7", "X6"])
class MqttSubscribesTwice(Subscriptions):
    """Makes each subscription twice when it comes back."""

    async def restore(self, link: Link) -> None:
        await super().restore(link)
        await super().restore(link)
