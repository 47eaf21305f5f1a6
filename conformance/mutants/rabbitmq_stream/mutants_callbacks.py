"""Defects in callbacks, and in what is kept too long (catalogue section NET-3)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conformance.mutants.rabbitmq_stream.client import StreamClient
from conformance.mutants.rabbitmq_stream.connection import Connection
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.link import Link
from conformance.mutants.rabbitmq_stream.mutants_network import LateAnswersCountOn
from conformance.mutants.rabbitmq_stream.publisher import Publisher
from conformance.mutants.registry import mutant


@mutant("cancelled-message-is-confirmed-later", breaks=["X8"])
class CancelledMessageIsConfirmedLater(LateAnswersCountOn):
    """Takes the confirm of a cancelled message for that of the next one."""

    def forget(self, publishing_id: int) -> None:
        super().forget(publishing_id)
        self.owed += 1


@mutant("copies-of-everything", breaks=["X9"])
class CopiesOfEverything(StreamClient):
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


class _Keeping(Connection):
    """Has a list of the answers that nobody has asked for."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kept: list[bytes] = []

    def answered_late(self, frame: Any) -> None:
        self.kept.append(os.urandom(1024))


@mutant("unmatched-answers-are-kept", breaks=["X9"], aims=["NET-3.05"])
class UnmatchedAnswersAreKept(StreamClient):
    """Keeps answers that nobody has asked for."""

    connection_type = _Keeping

    @property
    def buffered_bytes(self) -> int:
        cores: list[Any] = [link.core for link in self.links]
        return super().buffered_bytes + sum(len(one) for core in cores for one in core.kept)


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


@mutant("lost-tasks", breaks=["X10"], aims=["NET-3.08"])
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

    together: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, list[StreamClient]]] = WeakKeyDictionary()

    async def connect(self, timeout: float | None = None) -> None:
        await super().connect(timeout)
        self.together.setdefault(asyncio.get_running_loop(), []).append(self)

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        everybody = self.together.get(asyncio.get_running_loop(), [])
        if not self.is_closed and self in everybody:
            everybody.remove(self)
            for other in list(everybody):
                for one in list(other.links):
                    one.drop(ClientError("connection", "another session was lost"))
