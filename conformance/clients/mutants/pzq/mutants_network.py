"""Defects that any protocol's client may have: connections, deadlines, callbacks (catalogue family NET)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.client import PzqClient
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.inquirer import Values
from conformance.clients.reference.pzq.producer import Answer, Producer
from conformance.clients.reference.pzq.sockets import Connector, Parts

Waiting = asyncio.Future[Answer]

# NET-2 the life of connections


@mutant("never-reconnects", tag="life-cycle", breaks=["X6"])
class PzqNeverReconnects(Connector):
    """Lets its sockets connect only once."""

    reconnect_ms = -1


@mutant("reconnects-without-pause", tag="life-cycle", breaks=["X6"])
class PzqReconnectsWithoutPause(Connector):
    """Lets its sockets connect again after 10 ms."""

    reconnect_ms = 10


@mutant("close-keeps-the-socket", tag="life-cycle", breaks=["X7", "X9"])
class CloseKeepsTheSocket(Producer):
    """Ends the calls that wait, and leaves its socket to itself."""

    def close(self) -> None:
        self.socket.close, close = lambda: None, self.socket.close  # type: ignore[method-assign]
        super().close()
        self.socket.close = close  # type: ignore[method-assign]


# NET-3 requests and memory


@mutant("hundred-pending", tag="data", breaks=["X9"])
class HundredPending(Producer):
    """Forgets the oldest of more than a hundred messages that wait, and their outcome is never reported."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        if len(self.pending) > 100:
            del self.pending[next(iter(self.pending))]
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            if message[0] not in self.pending:
                await asyncio.Event().wait()
            raise


@mutant("one-in-fifty-is-lost", tag="data", breaks=["X9"], aims=["NET-4.06"])
class PzqOneInFiftyIsLost(Producer):
    """Loses a message now and then, and takes it for stored."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        if self._number % 50 == 49:
            return Answer(message[0], b"1", ())
        return await super().acknowledged(message, waiting, timeout)


@mutant("unmatched-answers-are-kept", tag="life-cycle", breaks=["X9"], aims=["NET-3.05"])
class PzqUnmatchedAnswersAreKept(Producer):
    """Keeps answers that no call waits for."""

    def find(self, answer: Answer) -> Waiting | None:
        waiting = super().find(answer)
        if waiting is None:
            size = sum(map(len, answer.texts))
            self.__dict__.setdefault("kept", []).append(os.urandom(size))
            self.buffered_bytes += size
        return waiting


@mutant("new-socket-for-a-new-try", tag="life-cycle", breaks=["X9"])
class NewSocketForANewTry(Producer):
    """Sends what is not acknowledged at once again over another socket, and keeps the first one."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        self.socket.send(*message)
        await asyncio.wait({waiting}, timeout=0.05)
        if waiting.done():
            return await waiting
        self.socket = self.connector.connect(self.endpoint, self.kind, self.receive)
        return await super().acknowledged(message, waiting, timeout)


@mutant("sessions-share-a-fate", tag="life-cycle", breaks=["X6", "X10"])
class PzqSessionsShareAFate(Producer):
    """One message without an answer fails all that wait, in whatever session."""

    down_until: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, float]] = WeakKeyDictionary()

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        loop = asyncio.get_running_loop()
        if loop.time() < self.down_until.get(loop, 0.0):
            raise ClientError("connection", "the broker is gone")
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            self.down_until[loop] = loop.time() + 1.0
            raise


# NET-3 time


@mutant("deadlines-by-wall-clock", tag="life-cycle", breaks=["X8", "X11"])
class PzqDeadlinesByWallClock(Producer):
    """Measures its deadlines with the wall clock."""

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        wall = self.runtime.clock.wall
        end = wall() + (timeout if timeout is not None else 3600.0)
        self.socket.send(*message)
        while not waiting.done():
            if wall() > end:
                raise TimeoutError
            await asyncio.sleep(0.02)
        return await waiting


@mutant("a-pause-doubles-messages", tag="data", breaks=["X11"], aims=["NET-3.11"])
class APauseDoublesMessages(Producer):
    """Sends every message twice, under two ids, once the process had stood still for some seconds."""

    stood_still = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ticking = asyncio.get_running_loop().create_task(self._tick())

    async def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        while not self.stood_still:
            await asyncio.sleep(0.5)
            self.stood_still = loop.time() - before > 3.0
            before = loop.time()

    def close(self) -> None:
        self._ticking.cancel()
        super().close()

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        if self.stood_still:
            self.socket.send(self.new_id(), *message[1:])
        return await super().acknowledged(message, waiting, timeout)


# NET-3 callbacks


@mutant("callback-error-ends-the-consumer", tag="life-cycle", breaks=["X10"])
class CallbackErrorEndsTheConsumer(Consumer):
    """Delivers nothing more when a callback has raised."""

    async def hand_over(self, delivery: Delivery) -> None:
        try:
            await self.deliver_message(delivery)
        except Exception as error:
            self.runtime.callbacks.failed("message", error)
            await self.settle(delivery, False)
            await asyncio.Event().wait()


@mutant("callbacks-block-calls", tag="life-cycle", breaks=["X10"])
class CallbacksBlockCalls(PzqClient):
    """A call inside a callback waits for the callback to end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lock = asyncio.Lock()

    def subscribe(
        self, deliver_message: Callable[[Delivery], Awaitable[None]], *, filter_expired: bool = False
    ) -> Consumer:
        async def locked(delivery: Delivery) -> None:
            async with self.lock:
                await deliver_message(delivery)

        return super().subscribe(locked, filter_expired=filter_expired)

    async def publish(self, body: Parts, id: bytes | None = None, timeout: float | None = None) -> Answer:
        async with asyncio.timeout(timeout), self.lock:
            return await super().publish(body, id, timeout)

    async def ask(self, timeout: float | None = None) -> Values:
        async with asyncio.timeout(timeout), self.lock:
            return await super().ask(timeout)


@mutant("lost-tasks", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class PzqLostTasks(Producer):
    """Leaves errors of its background tasks to the garbage collector."""

    def settle(self, answer: Answer, waiting: Waiting) -> None:
        super().settle(answer, waiting)
        if not self.stored(answer.status):
            asyncio.get_running_loop().create_task(_failing(self.reason(answer)))


async def _failing(reason: str) -> None:
    raise ClientError("refused", reason)


# NET-4 content


@mutant("unknown-status-waits-on", tag="life-cycle", breaks=["P3", "X5", "X8"])
class UnknownStatusWaitsOn(Producer):
    """Waits for another answer, and without a deadline, when it does not know the status of the first."""

    odd = b""

    def settle(self, answer: Answer, waiting: Waiting) -> None:
        if answer.status in (b"0", b"1"):
            super().settle(answer, waiting)
        else:
            self.odd = answer.id

    def repeat(self, message: Parts) -> None:
        if message[0] != self.odd:
            super().repeat(message)

    async def acknowledged(self, message: Parts, waiting: Waiting, timeout: float | None) -> Answer:
        try:
            return await super().acknowledged(message, waiting, timeout)
        except TimeoutError:
            if message[0] != self.odd:
                raise
            await asyncio.Event().wait()
            raise


@mutant("bodies-as-text", tag="data", breaks=["X12"])
class BodiesAsText(Producer):
    """Takes bodies for text, and replaces what is none."""

    def layout(self, id: bytes, body: Parts) -> Parts:
        return super().layout(id, tuple(part.decode(errors="replace").encode() for part in body))
