"""Defects that any protocol's client may have (catalogue family NET)."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, ClassVar

from conformance.mutants.rabbitmq_stream.client import StreamClient
from conformance.mutants.rabbitmq_stream.connection import Connection
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.link import Link
from conformance.mutants.rabbitmq_stream.network import Wire, sockets
from conformance.mutants.rabbitmq_stream.publisher import Entry, Publisher
from conformance.mutants.rabbitmq_stream.subscription import Report, Subscription
from conformance.mutants.registry import mutant
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata

# NET-1 the byte stream


@mutant("resends-at-once", breaks=["X1"])
class ResendsAtOnce(StreamClient):
    """Publishes again what has no confirm after a quarter of a second."""

    async def publish(self, *args: Any, **more: Any) -> Any:
        receipts = await super().publish(*args, **more)
        for receipt in receipts:
            asyncio.get_running_loop().call_later(0.25, self._again, receipt.publisher, receipt.entry)
        return receipts

    def _again(self, publisher: Publisher, entry: Entry) -> None:
        if publisher.connection is not None and publisher.pending.get(entry.publishing_id or 0) is entry:
            publisher.write([entry])
            publisher.connection.owner.flush()


@mutant("slow-frames-are-lost", breaks=["X1"])
class SlowFramesAreLost(Connection):
    """Gives a connection up when a frame takes longer than three seconds."""

    began: float | None = None

    def receive(self, data: bytes, now: float) -> None:
        super().receive(data, now)
        if not self.codec.partial:
            self.began = None
        elif self.began is None:
            self.began = now
        elif now - self.began > 3.0:
            self.end(ClientError("connection", "a frame takes too long"))


class _Careless(Publisher):
    """Writes only while the transport takes it."""

    def write(self, entries: Sequence[Entry]) -> None:
        if getattr(getattr(self.connection, "owner", None), "is_writable", True):
            super().write(entries)
            return
        for entry in entries:
            asyncio.get_running_loop().call_soon(self.settle, entry.publishing_id or 0, None)


@mutant("back-pressure-loses-messages", breaks=["X4"])
class BackPressureLosesMessages(StreamClient):
    """Throws messages away while the server does not read, and reports them as stored."""

    publisher_type = _Careless

    def may_send(self, publisher: Publisher) -> bool:
        return publisher.has_room()


@mutant("late-answers-count-on", breaks=["X3", "X8"])
class LateAnswersCountOn(Publisher):
    """Takes a confirm that came too late for the next message."""

    owed = 0

    def settle(self, publishing_id: int, error: ClientError | None) -> None:
        if error is not None and error.kind == "timeout":
            self.owed += 1
        if publishing_id not in self.pending and error is None and self.owed and self.pending:
            self.owed -= 1
            publishing_id = next(iter(self.pending))
        super().settle(publishing_id, error)


class _Lenient(Connection):
    """Skips everything that it cannot read."""

    def malformed(self, frame: Any) -> None:
        pass

    def lost(self, now: float, problem: str) -> None:
        if self.state != "new":
            super().lost(now, problem)


@mutant("garbage-hangs", breaks=["R1", "X5"])
class GarbageHangs(StreamClient):
    """Waits for ever when the first bytes of the server make no sense."""

    connection_type = _Lenient

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(10_000.0)


@mutant("tls-falls-back-to-plain", breaks=["X5"])
class TlsFallsBackToPlain(StreamClient):
    """Connects without TLS when TLS does not work."""

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        try:
            return await super().dial(endpoint, make)
        except ssl.SSLError:
            return await sockets()(endpoint, make)
        except ConnectionResetError:
            return await sockets()(endpoint, make)


@mutant("certificates-unchecked", breaks=["X5"])
class CertificatesUnchecked(StreamClient):
    """Takes any certificate."""

    @staticmethod
    def tls_context(ca_file: str | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=ca_file)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


# NET-2 the life of connections


@mutant("reconnects-once", breaks=["X6"])
class ReconnectsOnce(StreamClient):
    """Tries only once to reconnect."""

    def is_final(self, error: ClientError) -> bool:
        return True


@mutant("reconnects-without-pause", breaks=["X6"])
class ReconnectsWithoutPause(StreamClient):
    """Tries to reconnect twenty times a second."""

    def delay(self, failures: int) -> float:
        return 0.05


@mutant("reconnects-in-step", breaks=["X6"])
class ReconnectsInStep(StreamClient):
    """Waits equally long before a reconnect as every other client."""

    def delay(self, failures: int) -> float:
        return min(self.settings.first_delay_s * 2.0**failures, self.settings.longest_delay_s)


@mutant("reconnects-twice", breaks=["X6", "X9"])
class ReconnectsTwice(StreamClient):
    """Makes two connections for one that was lost."""

    async def reconnect(self) -> None:
        await super().reconnect()
        try:
            await self.open_link(self.endpoints[0], self.deadline(None))
        except ClientError:
            return


@mutant("subscribes-twice", breaks=["R9", "X6"])
class SubscribesTwice(StreamClient):
    """Subscribes twice after a reconnect, and surfaces everything twice."""

    async def recover(self, user: Publisher | Subscription) -> None:
        await super().recover(user)
        if isinstance(user, Subscription) and user.connection is not None:
            first = user.subscription_id
            core = user.connection
            await self.place(user, self.deadline(None))
            core.subscriptions[first] = user
            user.is_wanted = lambda offset: True  # type: ignore[method-assign]


@mutant("connect-survives-close", breaks=["X7"])
class ConnectSurvivesClose(StreamClient):
    """Goes on connecting when it is closed meanwhile."""

    async def connect(self, timeout: float | None = None) -> None:
        await self.connect_control(self.deadline(timeout))
        self.tell("connected")


@mutant("close-drops-outcomes", breaks=["R7", "X7"])
class CloseDropsOutcomes(StreamClient):
    """Reports no outcome for what is unconfirmed when it is closed."""

    def end_publishers(self, error: ClientError) -> None:
        for publisher in self.publishers.values():
            publisher.is_closed = True
            publisher.pending.clear()

    def detach(self, user: Publisher | Subscription, error: ClientError) -> None:
        if self.is_closed and isinstance(user, Publisher):
            user.pending.clear()
        super().detach(user, error)


# NET-3 requests, memory, callbacks


@mutant("cancelled-message-is-confirmed-later", breaks=["X8"])
class CancelledMessageIsConfirmedLater(LateAnswersCountOn):
    """Takes the confirm of a cancelled message for that of the next one."""

    def forget(self, publishing_id: int) -> None:
        super().forget(publishing_id)
        self.owed += 1


@mutant("copies-of-everything", breaks=["X9"])
class CopiesOfEverything(StreamClient):
    """Keeps copies of all bodies that wait for a connection."""

    copies: ClassVar[list[bytes]] = []

    async def ready(self, publisher: Publisher, size: int, deadline: float) -> None:
        if publisher.connection is None:
            self.copies.append(os.urandom(3 * size))
        await super().ready(publisher, size, deadline)


class _Keeping(Connection):
    """Has a list of the answers that nobody has asked for."""

    kept: ClassVar[list[bytes]] = []

    def answered_late(self, frame: Any) -> None:
        self.kept.append(os.urandom(1024))


@mutant("unmatched-answers-are-kept", breaks=["X9"])
class UnmatchedAnswersAreKept(StreamClient):
    """Keeps answers that nobody has asked for."""

    connection_type = _Keeping

    @property
    def buffered_bytes(self) -> int:
        return super().buffered_bytes + sum(map(len, _Keeping.kept))


@mutant("callback-error-stops-the-reader", breaks=["X10"])
class CallbackErrorStopsTheReader(StreamClient):
    """A callback that raises ends the reader of its connection, and nobody is told."""

    def contain(self, callback: str, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception:
            self._stop_reading()

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except Exception:
            self._stop_reading()

    def _stop_reading(self) -> None:
        for link in self.links:
            link.data_received = lambda data: None  # type: ignore[method-assign]


@mutant("callback-errors-vanish", breaks=["X10"])
class CallbackErrorsVanish(StreamClient):
    """Swallows what a callback raises without a trace."""

    def callback_failed(self, callback: str, error: Exception) -> None:
        pass

    def trouble(self, where: str, error: ClientError) -> None:
        try:
            self.on_error(where, error)
        except Exception:
            return


@mutant("callbacks-block-requests", breaks=["X10"])
class CallbacksBlockRequests(StreamClient):
    """An op inside a callback waits for the callback to end."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.lock = asyncio.Lock()

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        async with self.lock:
            await super().contain_async(callback, act)

    async def publish(self, *args: Any, **more: Any) -> Any:
        async with self.lock:
            return await super().publish(*args, **more)

    async def query_offset(self, *args: Any, **more: Any) -> int:
        async with self.lock:
            return await super().query_offset(*args, **more)


@mutant("lost-tasks", breaks=["X10"])
class LostTasks(StreamClient):
    """Leaves errors of its background tasks to whoever collects the garbage."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        if not self.is_closed:
            asyncio.get_running_loop().create_task(_failing(error))


async def _failing(error: ClientError) -> None:
    raise ClientError(error.kind, error.text)


@mutant("reconnect-leaks-a-task", breaks=["X9"])
class ReconnectLeaksATask(StreamClient):
    """Leaves a task behind for each reconnect."""

    async def reconnect(self) -> None:
        self.spawn(asyncio.sleep(10_000.0))
        await super().reconnect()


@mutant("liveness-by-wall-clock", breaks=["X11"])
class LivenessByWallClock(StreamClient):
    """Measures time with the wall clock."""

    def now(self) -> float:
        return super().now() + self.wall_offset_s

    def loop_time(self, moment: float) -> float:
        return moment - self.wall_offset_s


@mutant("sessions-share-a-fate", breaks=["X6", "X10"])
class SessionsShareAFate(StreamClient):
    """The loss of one session's connection ends those of all others."""

    everybody: ClassVar[list[StreamClient]] = []

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(timeout)
        self.everybody.append(self)

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        if not self.is_closed and self in self.everybody:
            self.everybody.remove(self)
            for other in list(self.everybody):
                for one in list(other.links):
                    one.drop(ClientError("connection", "another session was lost"))


# NET-4 content


@mutant("unknown-stream-code-is-fine", breaks=["R20", "X5"])
class UnknownStreamCodeIsFine(StreamClient):
    """Takes a code in a Metadata answer that it does not know for success."""

    def entry_of(self, answer: Any, stream: str) -> StreamMetadata:
        entry = super().entry_of(answer, stream)
        return entry if entry.code in {code.value for code in Code} else entry._replace(code=Code.OK)


@mutant("positions-are-floats", breaks=["R10", "X12"])
class PositionsAreFloats(Subscription):
    """Keeps positions as floating-point numbers."""

    def records(self, chunk: Chunk, report: Report) -> Iterator[tuple[int, bytes]]:
        for offset, body in super().records(chunk, report):
            yield int(float(offset)), body
