"""Defects in callbacks, and in what is kept too long (catalogue section NET-3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conformance.clients.mutants.rabbitmq_stream.mutants_network import LateAnswersCountOn
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Callbacks, ClientError, Clock
from conformance.clients.reference.rabbitmq_stream.client import StreamClient
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from conformance.clients.reference.rabbitmq_stream.requests import Requests


@mutant("cancelled-message-is-confirmed-later", tag="data", breaks=["X8"])
class StreamCancelledMessageIsConfirmedLater(LateAnswersCountOn):
    """Takes the confirm of a cancelled message for that of the next one."""

    def forget(self, publishing_id: int) -> None:
        super().forget(publishing_id)
        self.owed += 1


@mutant("copies-of-everything", tag="life-cycle", breaks=["X9"])
class CopiesOfEverything(Publishing):
    """Keeps copies of all bodies that wait for a connection."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.copies: list[bytes] = []

    async def ready(self, publisher: Publisher, size: int, deadline: float) -> None:
        if publisher.connection is None:
            self.copies.append(os.urandom(3 * size))
        await super().ready(publisher, size, deadline)

    @property
    def buffered_bytes(self) -> int:
        return super().buffered_bytes + sum(map(len, self.copies))


class _Keeping(Requests):
    """Has a list of the answers that were not asked for."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: list[bytes] = []

    def answered_late(self, frame: Any) -> None:
        self.kept.append(os.urandom(1024))


@mutant("unmatched-answers-are-kept", tag="life-cycle", breaks=["X9"], aims=["NET-3.05"], also=[_Keeping])
class StreamUnmatchedAnswersAreKept(StreamClient):
    """Keeps answers that were not asked for."""

    @property
    def buffered_bytes(self) -> int:
        tables: list[Any] = [link.core.requests for link in self.links.all]
        return super().buffered_bytes + sum(len(one) for table in tables for one in table.kept)


class _Counting(Callbacks):
    """Drops what callbacks raise.

    Attributes:
        failures: How often.
    """

    failures = 0

    def failed(self, callback: str, error: Exception) -> None:
        self.failures += 1


@mutant("callback-error-stops-the-reader", tag="life-cycle", breaks=["X10"], also=[_Counting])
class CallbackErrorStopsTheReader(Link):
    """A callback that raises ends the reader of its connection, and nothing is reported."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        callbacks: Any = self.client.runtime.callbacks
        self.callbacks = callbacks
        self.before = callbacks.failures

    def data_received(self, data: bytes) -> None:
        if self.callbacks.failures == self.before:
            super().data_received(data)


class _OneByOne(Callbacks):
    """Lets nothing else happen while a callback runs.

    Attributes:
        lock: Held as long as one runs.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lock = asyncio.Lock()

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        async with self.lock:
            await super().contain_async(callback, act)


class _WaitingToPublish(Publishing):
    async def publish(self, *args: Any, **more: Any) -> Any:
        callbacks: Any = self.runtime.callbacks
        async with callbacks.lock:
            return await super().publish(*args, **more)


@mutant("callbacks-block-requests", tag="life-cycle", breaks=["X10"], also=[_OneByOne, _WaitingToPublish])
class CallbacksBlockRequests(StreamClient):
    """An op inside a callback waits for the callback to end."""

    async def query_offset(self, *args: Any, **more: Any) -> int:
        callbacks: Any = self.runtime.callbacks
        async with callbacks.lock:
            return await super().query_offset(*args, **more)


@mutant("lost-tasks", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class StreamLostTasks(Recovery):
    """Leaves errors of its background tasks to the garbage collector."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        if not self.runtime.is_closed:
            asyncio.get_running_loop().create_task(_failing(error))


async def _failing(error: ClientError) -> None:
    raise ClientError(error.kind, error.text)


@mutant("reconnect-leaks-a-task", tag="life-cycle", breaks=["X9"])
class StreamReconnectLeaksATask(Recovery):
    """Leaves a task for each reconnect."""

    async def reconnect(self) -> None:
        self.runtime.tasks.spawn(asyncio.sleep(10_000.0))
        await super().reconnect()


@mutant("liveness-by-wall-clock", tag="life-cycle", breaks=["X11"])
class LivenessByWallClock(Clock):
    """Measures time with the wall clock."""

    def now(self) -> float:
        return super().now() + self.wrong_by_s

    def loop_time(self, moment: float) -> float:
        return moment - self.wrong_by_s


class _Together(StreamClient):
    clients: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, list[StreamClient]]] = WeakKeyDictionary()

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(timeout)
        self.clients.setdefault(asyncio.get_running_loop(), []).append(self)


@mutant("sessions-share-a-fate", tag="life-cycle", breaks=["X6", "X10"], also=[_Together])
class StreamSessionsShareAFate(Recovery):
    """The loss of one session's connection ends those of all others."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        everybody = _Together.clients.get(asyncio.get_running_loop(), [])
        if not self.runtime.is_closed and self.client in everybody:
            everybody.remove(self.client)
            for other in list(everybody):
                for one in list(other.links.all):
                    one.drop(ClientError("connection", "another session was lost"))


class _Raising(Callbacks):
    """Lets an error of the application's callback for an outcome through, once it was reported."""

    def failed(self, callback: str, error: Exception) -> None:
        super().failed(callback, error)
        if callback == "confirm":
            raise error


@mutant("raising-ends-the-confirm", tag="life-cycle", breaks=["X10"], also=[_Raising])
class RaisingEndsTheConfirm(Publisher):
    """Leaves the rest of a confirm aside once the callback of a message in it has raised."""

    def confirmed(self, ids: Sequence[int]) -> None:
        with suppress(RuntimeError):
            super().confirmed(ids)
