"""Defects in the life of connections and in deadlines (catalogue sections NET-2 to NET-4)."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError, Tasks
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.channels import Publishers, Publishing
from conformance.clients.reference.narconi.client import NarconiClient
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.socket import Socket
from conformance.clients.reference.narconi.websockets import WebSockets

T = TypeVar("T")

# NET-2 the life of connections


@mutant("reconnects-once", tag="life-cycle", breaks=["X6"])
class NarconiReconnectsOnce(WebSockets):
    """Is over when its first attempt to reconnect fails."""

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await super().reconnect(again)
        except ClientError:
            self.runtime.is_closed = True
            raise

    def is_final(self, error: ClientError) -> bool:
        return True


@mutant("gone-queue-is-tried-for-ever", tag="life-cycle", breaks=["X6"])
class GoneQueueIsTriedForEver(WebSockets):
    """Tries again whatever the server refuses, and reports no error."""

    def is_final(self, error: ClientError) -> bool:
        return False


@mutant("reconnects-twice", tag="life-cycle", breaks=["X6", "X9"])
class NarconiReconnectsTwice(WebSockets):
    """Makes two WebSockets for one that was lost."""

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        made = await super().reconnect(again)
        await again()
        return made


@mutant("reconnect-survives-close", tag="life-cycle", breaks=["X7"])
class ReconnectSurvivesClose(WebSockets):
    """Goes on reconnecting when it is closed meanwhile."""

    def recover(self, again: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T] | None:
        if self.runtime.is_closed or not self.settings.auto_reconnect:
            return None
        return asyncio.get_running_loop().create_task(self._for_ever(again))

    async def _for_ever(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        while True:
            await self.runtime.backoff(self.settings.first_delay_s, self.settings.longest_delay_s).pause()
            try:
                return await again()
            except ClientError:
                continue


@mutant("close-is-a-mark", tag="life-cycle", breaks=["X7"])
class CloseIsAMark(NarconiClient):
    """Only takes no more ops when it is closed; its connections stay."""

    async def close(self, timeout: float | None = None) -> None:
        self.runtime.is_closed = True


@mutant("goodbye-unanswered", tag="wire", breaks=["X7"])
class GoodbyeUnanswered(Socket):
    """Does not answer the server's close frame."""

    def closed_by_server(self, payload: bytes) -> None:
        self._closing, wanted = True, self._closing
        self._is_open, was_open = False, self._is_open
        if was_open and not wanted:
            self._on_lost(ClientError("connection", "the server closed the connection", definite=False))
        if self.wire is not None:
            self.wire.close()


@mutant("close-drops-outcomes", tag="data", breaks=["X7"])
class NarconiCloseDropsOutcomes(NarconiClient):
    """Reports no outcome for what has no confirm when it is closed."""

    async def close(self, timeout: float | None = None) -> None:
        for publishing in self.publishers.standing():
            publishing.core.pending.clear()
        await super().close(timeout)


# NET-3 requests


@mutant("cancelled-message-is-confirmed-later", tag="data", breaks=["X8"])
class NarconiCancelledMessageIsConfirmedLater(Publishers):
    """Forgets a cancelled message, and takes its confirm for that of the next one."""

    def overdue(self, publishing: Publishing) -> None:
        if publishing.core.pending:
            publishing.core.pending.popleft()


@mutant("answers-in-order-of-asking", tag="data", breaks=["X8"])
class AnswersInOrderOfAsking(HttpApi):
    """Takes the first answer for that to the first request, whatever connection it comes on."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.line: deque[asyncio.Future[Response]] = deque()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        mine: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.line.append(mine)
        try:
            response = await super().request(method, path, headers, body)
        except BaseException:
            self.line.remove(mine)
            raise
        self.line.popleft().set_result(response)
        return await mine


@mutant("parked-messages-stay", tag="life-cycle", breaks=["X8", "X9"], aims=["NET-3.04"])
class ParkedMessagesStay(Publishers):
    """Never ends a message that was published while there was no connection."""

    def is_parked(self, queue: str) -> bool:
        """Whether the queue's connection is being made again."""
        task = self.by_queue.get(queue)
        return self.websockets.settings.auto_reconnect and task is not None and not task.done()

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        work = super().publish(queue, body, headers)
        if not self.is_parked(queue):
            return await work
        work.close()
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                if self.runtime.is_closed:
                    raise


@mutant("deadlines-by-wall-clock", tag="life-cycle", breaks=["X11"])
class NarconiDeadlinesByWallClock(Tasks):
    """Measures deadlines with the wall clock."""

    async def within(self, timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(super().within(None, work))
        end = None if timeout is None else self._clock.wall() + timeout
        try:
            while not task.done():
                if end is not None and self._clock.wall() >= end:
                    raise ClientError("timeout", f"not done after {timeout} s")
                await asyncio.wait({task}, timeout=0.05)
            return task.result()
        finally:
            task.cancel()


@mutant("sessions-share-a-fate", tag="life-cycle", breaks=["X6", "X10"], aims=["NET-3.12"])
class NarconiSessionsShareAFate(Publishers):
    """The loss of one session's connection ends those of all others."""

    together: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, list[Publishers]]] = WeakKeyDictionary()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.together.setdefault(asyncio.get_running_loop(), []).append(self)

    def lost(self, queue: str, lost: Publishing, error: ClientError) -> None:
        super().lost(queue, lost, error)
        everybody = self.together.get(asyncio.get_running_loop(), [])
        if not self.runtime.is_closed and self in everybody:
            everybody.remove(self)
            for other in everybody:
                for publishing in other.standing():
                    publishing.socket.give_up("another session was lost")


# NET-4 content


@mutant("bad-servers-are-shunned", tag="life-cycle", breaks=["X5"], aims=["NET-4.07"])
class BadServersAreShunned(WebSockets):
    """Never again connects to a server that has sent something wrong five times."""

    bad: ClassVar[Counter[str]] = Counter()

    async def open(self, socket: Socket) -> None:
        if self.bad[self.settings.endpoint] >= 5:
            raise ClientError("connection", "this server is bad", definite=True)
        try:
            await super().open(socket)
        except ClientError as error:
            if error.kind == "protocol":
                self.bad[self.settings.endpoint] += 1
            raise
