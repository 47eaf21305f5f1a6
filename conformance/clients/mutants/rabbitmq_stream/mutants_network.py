"""Defects that any protocol's client may have (catalogue family NET)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.publisher import Entry, Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery, User
from conformance.clients.reference.rabbitmq_stream.subscription import Report, Subscription
from fakebrokers.rabbitmq_stream.chunk import Chunk
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata

# NET-1 the byte stream


@mutant("resends-at-once", tag="data", breaks=["X1"])
class ResendsAtOnce(Publishing):
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


@mutant("slow-frames-are-lost", tag="life-cycle", breaks=["X1"])
class StreamSlowFramesAreLost(Connection):
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


@mutant("back-pressure-loses-messages", tag="data", breaks=["X4"], also=[_Careless])
class BackPressureLosesMessages(Publishing):
    """Throws messages away while the server does not read, and reports them as stored."""

    def may_send(self, publisher: Publisher) -> bool:
        return publisher.has_room()


@mutant("late-answers-count-on", tag="data", breaks=["X3", "X8"])
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


@mutant("garbage-hangs", tag="life-cycle", breaks=["R1", "X5"], aims=["RMQS-6.03"], also=[_Lenient])
class GarbageHangs(StreamClient):
    """Waits forever when the first bytes of the server make no sense."""

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(10_000.0)


# NET-2 the life of connections


@mutant("reconnects-once", tag="life-cycle", breaks=["X6"])
class StreamReconnectsOnce(Recovery):
    """Tries only once to reconnect."""

    def is_final(self, error: ClientError) -> bool:
        return True


@mutant("reconnects-twice", tag="life-cycle", breaks=["X6", "X9"])
class StreamReconnectsTwice(Recovery):
    """Makes two connections for one that was lost."""

    async def reconnect(self) -> None:
        await super().reconnect()
        try:
            await self.links.open(self.links.endpoints[0], self.runtime.clock.deadline(None))
        except ClientError:
            return


@mutant("waits-for-nobody", tag="life-cycle", breaks=["X3", "X6"])
class WaitsForNobody(Links):
    """Waits for a connection until the deadline, although none is being made."""

    async def until(self, condition: Callable[[], bool], deadline: float = math.inf) -> None:
        try:
            await super().until(condition, deadline)
        except ClientError as error:
            if error.kind != "connection" or deadline == math.inf:
                raise
            await asyncio.sleep(max(0.0, deadline - self.runtime.clock.now()))
            raise


@mutant("subscribes-twice", tag="data", breaks=["R9", "X6"])
class SubscribesTwice(Recovery):
    """Subscribes twice after a reconnect, and delivers everything twice."""

    async def recover(self, user: User) -> None:
        await super().recover(user)
        if isinstance(user, Subscription) and user.connection is not None:
            first = user.subscription_id
            core = user.connection
            await self.client.consuming.place(user, self.runtime.clock.deadline(None))
            core.subscriptions[first] = user
            user.is_wanted = lambda offset: True  # type: ignore[method-assign]


@mutant("connect-survives-close", tag="life-cycle", breaks=["X7"])
class ConnectSurvivesClose(StreamClient):
    """Goes on connecting when it is closed meanwhile."""

    async def connect(self, timeout: float | None = None) -> None:
        await self._connect(self.runtime.clock.deadline(timeout))


class _Dropping(Recovery):
    def detach(self, user: User, error: ClientError) -> None:
        if self.runtime.is_closed and isinstance(user, Publisher):
            user.pending.clear()
        super().detach(user, error)


@mutant("close-drops-outcomes", tag="data", breaks=["R7", "X7"], also=[_Dropping])
class StreamCloseDropsOutcomes(Publishing):
    """Reports no outcome for what is unconfirmed when it is closed."""

    def end(self, error: ClientError) -> None:
        for publisher in self.publishers.values():
            publisher.is_closed = True
            publisher.pending.clear()


# NET-4 content


@mutant("unknown-stream-code-is-fine", tag="data", breaks=["R20", "X5"])
class UnknownStreamCodeIsFine(Locator):
    """Takes a code in a Metadata answer that it does not know for success."""

    def entry_of(self, answer: Any, stream: str) -> StreamMetadata:
        entry = super().entry_of(answer, stream)
        return entry if entry.code in {code.value for code in Code} else entry._replace(code=Code.OK)


@mutant("positions-are-floats", tag="data", breaks=["R10", "X12"])
class PositionsAreFloats(Subscription):
    """Keeps positions as floating-point numbers."""

    def records(self, chunk: Chunk, report: Report) -> Iterator[tuple[int, bytes]]:
        for offset, body in super().records(chunk, report):
            yield int(float(offset)), body
