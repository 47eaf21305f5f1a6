"""Defects in the life of connections and in deadlines (catalogue sections NET-2 to NET-4)."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

from conformance.mutants.narconi.channels import Publishing
from conformance.mutants.narconi.client import NarconiClient
from conformance.mutants.narconi.errors import ClientError
from conformance.mutants.narconi.http import Response
from conformance.mutants.narconi.socket import Socket
from conformance.mutants.registry import mutant

T = TypeVar("T")

# NET-2 the life of connections


@mutant("reconnects-once", breaks=["X6"])
class ReconnectsOnce(NarconiClient):
    """Is over when its first attempt to reconnect fails."""

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await super().reconnect(again)
        except ClientError:
            self.is_closed = True
            raise

    def is_final(self, error: ClientError) -> bool:
        return True


@mutant("reconnects-without-pause", breaks=["X6"])
class ReconnectsWithoutPause(NarconiClient):
    """Tries to reconnect twenty times a second."""

    def delay(self, failures: int) -> float:
        return 0.05


@mutant("reconnects-in-step", breaks=["X6"])
class ReconnectsInStep(NarconiClient):
    """Waits equally long before a reconnect as every other client."""

    def delay(self, failures: int) -> float:
        return min(self.settings.first_delay_s * 2.0**failures, self.settings.longest_delay_s)


@mutant("reconnects-twice", breaks=["X6", "X9"])
class ReconnectsTwice(NarconiClient):
    """Makes two WebSockets for one that was lost."""

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        made = await super().reconnect(again)
        await again()
        return made


@mutant("reconnect-survives-close", breaks=["X7"])
class ReconnectSurvivesClose(NarconiClient):
    """Goes on reconnecting when it is closed meanwhile."""

    def recover(self, again: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T] | None:
        if self.is_closed or not self.settings.auto_reconnect:
            return None
        return asyncio.get_running_loop().create_task(self._for_ever(again))

    async def _for_ever(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        while True:
            await asyncio.sleep(self.delay(0))
            try:
                return await again()
            except ClientError:
                continue


@mutant("close-is-a-mark", breaks=["X7"])
class CloseIsAMark(NarconiClient):
    """Only takes no more ops when it is closed; its connections stay."""

    async def close(self, timeout: float | None) -> None:
        self.is_closed = True


@mutant("goodbye-unanswered", breaks=["X7"])
class GoodbyeUnanswered(Socket):
    """Does not answer the server's close frame."""

    def closed_by_server(self, payload: bytes) -> None:
        self._closing, wanted = True, self._closing
        self._is_open, was_open = False, self._is_open
        if was_open and not wanted:
            self._on_lost(ClientError("connection", "the server closed the connection", definite=False))
        if self.wire is not None:
            self.wire.close()


@mutant("close-drops-outcomes", breaks=["X7"])
class CloseDropsOutcomes(NarconiClient):
    """Reports no outcome for what has no confirm when it is closed."""

    async def close(self, timeout: float | None) -> None:
        for publishing in self._publishing():
            publishing.core.pending.clear()
        await super().close(timeout)


# NET-3 requests


@mutant("cancelled-message-is-confirmed-later", breaks=["X8"])
class CancelledMessageIsConfirmedLater(NarconiClient):
    """Forgets a cancelled message, and takes its confirm for that of the next one."""

    def overdue(self, publishing: Publishing) -> None:
        if publishing.core.pending:
            publishing.core.pending.popleft()


@mutant("answers-in-order-of-asking", breaks=["X8"])
class AnswersInOrderOfAsking(NarconiClient):
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


@mutant("parked-messages-stay", breaks=["X8", "X9"], aims=["NET-3.04"])
class ParkedMessagesStay(NarconiClient):
    """Never ends a message that was published while there was no connection."""

    def is_parked(self, queue: str) -> bool:
        """Whether the queue's connection is being made anew."""
        task = self.publishers.get(queue)
        return self.settings.auto_reconnect and task is not None and not task.done()

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        work = super().publish(queue, body, headers)
        if not self.is_parked(queue):
            return await work
        work.close()
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                if self.is_closed:
                    raise


@mutant("deadlines-by-wall-clock", breaks=["X11"])
class DeadlinesByWallClock(NarconiClient):
    """Measures deadlines with the wall clock."""

    async def within(self, timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.get_running_loop().create_task(super().within(None, work))
        end = None if timeout is None else self._wall() + timeout
        try:
            while not task.done():
                if end is not None and self._wall() >= end:
                    raise ClientError("timeout", f"not done after {timeout} s")
                await asyncio.wait({task}, timeout=0.05)
            return task.result()
        finally:
            task.cancel()

    def _wall(self) -> float:
        return asyncio.get_running_loop().time() + self.wall_offset_s


@mutant("sessions-share-a-fate", breaks=["X6", "X10"], aims=["NET-3.12"])
class SessionsShareAFate(NarconiClient):
    """The loss of one session's connection ends those of all others."""

    together: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, list[NarconiClient]]] = (
        WeakKeyDictionary()
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.together.setdefault(asyncio.get_running_loop(), []).append(self)

    def publisher_lost(self, queue: str, lost: Publishing, error: ClientError) -> None:
        super().publisher_lost(queue, lost, error)
        everybody = self.together.get(asyncio.get_running_loop(), [])
        if not self.is_closed and self in everybody:
            everybody.remove(self)
            for other in everybody:
                for publishing in other._publishing():
                    publishing.socket.give_up("another session was lost")


# NET-4 content


@mutant("bad-servers-are-shunned", breaks=["X5"], aims=["NET-4.07"])
class BadServersAreShunned(NarconiClient):
    """Never again connects to a server that has sent something wrong five times."""

    bad: ClassVar[Counter[str]] = Counter()

    async def reach(self, make: Callable[[], asyncio.Protocol], begin: Callable[[Any], None]) -> None:
        if self.bad[self.settings.endpoint] >= 5:
            raise ClientError("connection", "this server is bad", definite=True)
        await super().reach(make, begin)

    async def open(self, socket: Socket) -> None:
        try:
            await super().open(socket)
        except ClientError as error:
            if error.kind == "protocol":
                self.bad[self.settings.endpoint] += 1
            raise
