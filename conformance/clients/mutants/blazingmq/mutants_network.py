"""Defects that the scenarios about networks are for (catalogue family NET)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from weakref import WeakSet

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.frames import Frames
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.posts import Posts
from conformance.clients.reference.blazingmq.queues import Queue
from conformance.clients.reference.blazingmq.requests import Make, Requests, Waiting
from conformance.clients.reference.blazingmq.watchdog import Watchdog
from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.blazingmq.codes import Category
from fakebrokers.blazingmq.frames import Ack, ControlFrame, Response, StatusResponse
from fakebrokers.blazingmq.properties import Property
from fakebrokers.core.frames import Frame, Malformed

HOURS_S = 10_000.0
HASTE_S = 0.5
CROWDED = 100  #: posts without an ACK
LOSS_EVERY = 50
PAUSE_S = 2.0


@mutant("one-ack-event-per-read", tag="data", breaks=["B12", "X1"])
class OneAckEventPerRead(Frames):
    """Overlooks all ACK events of a read but the first."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        has_ack = False
        for frame in super().feed(data):
            if not (isinstance(frame, Ack) and has_ack):
                yield frame
            has_ack = has_ack or isinstance(frame, Ack)


class _PatientRequests(Requests):
    async def ask(self, make: Make, timeout: float, late: object = None) -> object:
        return await super().ask(make, HOURS_S)


@mutant("waits-for-a-silent-broker", tag="life-cycle", breaks=["X3"], also=[_PatientRequests])
class WaitsForASilentBroker(Watchdog):
    """Waits for a broker that has fallen silent, whatever the time-outs say."""

    def start(self, interval_s: float, most: int) -> None:
        return


@mutant("crowded-posts-are-a-loss", tag="life-cycle", breaks=["B10", "X4"])
class CrowdedPostsAreALoss(Posts):
    """Gives the connection up when a hundred posts wait for their ACKs."""

    def send(
        self, queue: Queue, body: bytes, properties: Mapping[str, Property], zlib_wanted: bool, number: int
    ) -> None:
        super().send(queue, body, properties, zlib_wanted, number)
        if len(self.pending) > CROWDED:
            self.client.link_now().end(ClientError("connection", "the broker is too slow"))


@mutant("one-in-fifty-is-lost", tag="data", breaks=["B10", "X9"], aims=["NET-4.06"])
class BlazingOneInFiftyIsLost(Posts):
    """Loses a message now and then, and takes it for stored."""

    async def acked(
        self, number: int, answer: asyncio.Future[dict[str, Any]], timeout: float
    ) -> dict[str, Any]:
        if number % LOSS_EVERY == 0 and not answer.done():
            answer.set_result({"meta": {"guid": "", "correlation": number}})
        return await super().acked(number, answer, timeout)

    def send(
        self, queue: Queue, body: bytes, properties: Mapping[str, Property], zlib_wanted: bool, number: int
    ) -> None:
        if number == 0 or number % LOSS_EVERY:
            super().send(queue, body, properties, zlib_wanted, number)


@mutant("half-a-second-for-answers", tag="life-cycle", breaks=["B8", "X1"])
class BlazingHalfASecondForAnswers(Requests):
    """Waits half a second for an answer, whatever the time-out says."""

    async def ask(self, make: Make, timeout: float, late: Any = None) -> Any:
        return await super().ask(make, min(timeout, HASTE_S), late)


@mutant("comes-back-after-close", tag="life-cycle", breaks=["X7"])
class BlazingComesBackAfterClose(BlazingClient):
    """Goes on with a reconnect after it was closed."""

    async def reconnect(self) -> None:
        await asyncio.shield(asyncio.ensure_future(super().reconnect()))


@mutant("posts-outlive-stop", tag="life-cycle", breaks=["B18", "X7"])
class PostsOutliveStop(Posts):
    """Posts without an ACK wait for their time-out though the session was stopped."""

    def end(self, error: ClientError) -> None:
        if not self.client.runtime.is_closed:
            super().end(error)


class _KeepingRequests(Requests):
    def answered(self, frame: Response) -> None:
        if frame.r_id not in self.waiting:
            self.link.client.__dict__.setdefault("kept", []).append(frame)
        super().answered(frame)


@mutant(
    "answers-to-nobody-are-kept",
    tag="life-cycle",
    breaks=["X9"],
    aims=["NET-3.05"],
    also=[_KeepingRequests],
)
class BlazingAnswersToNobodyAreKept(BlazingClient):
    """Keeps answers that no call waits for."""

    @property
    def buffered_bytes(self) -> int:
        return super().buffered_bytes + 1000 * len(self.__dict__.get("kept", ()))


@mutant("lost-tasks", tag="life-cycle", breaks=["X10"], aims=["NET-3.08"])
class BlazingLostTasks(BlazingClient):
    """Each lost connection leaves a failed task that nothing awaits."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        super().link_ended(link, error)
        asyncio.get_running_loop().create_task(self.fail())

    async def fail(self) -> None:
        """It is reported to no one."""
        raise RuntimeError("the connection is gone")


@mutant("a-pause-is-the-end", tag="life-cycle", breaks=["X11"], aims=["NET-3.11"])
class BlazingAPauseIsTheEnd(Link):
    """A process that was stopped for two seconds never works again."""

    async def open(self, endpoint: str, timeout: float) -> None:
        await super().open(endpoint, timeout)
        self.client.runtime.tasks.spawn(self.look())

    async def look(self) -> None:
        """Look how long a short time is."""
        clock = self.client.runtime.clock
        while self.state == "open":
            begun = clock.now()
            await asyncio.sleep(0.1)
            if clock.now() - begun > PAUSE_S:
                self.client.finish(ClientError("closed", "the clock has jumped"))


@mutant("one-loss-is-all", tag="life-cycle", breaks=["X6"])
class BlazingOneLossIsAll(BlazingClient):
    """The loss of one session's connection ends those of all others."""

    everyone: ClassVar[WeakSet[BlazingOneLossIsAll]] = WeakSet()

    async def connect(self, timeout: float | None) -> None:
        self.everyone.add(self)
        await super().connect(timeout)

    def link_ended(self, link: Link, error: ClientError) -> None:
        was_ours = link is self.link and not self.runtime.is_closed
        super().link_ended(link, error)
        for other in list(self.everyone) if was_ours else ():
            if other.link is not None:
                other.link.end(error)


class StrictCodec(BlazingCodec):
    """Takes a control message with more in it than is known for broken."""

    def decode(self, event: bytes) -> Frame:
        frame = super().decode(event)
        if isinstance(frame, ControlFrame) and event[6] == 0 and len(self.encode(frame)) != len(event):
            return Malformed(event[:64], "an element that is not known", "control")
        return frame


@mutant("unknown-elements-are-errors", tag="wire", breaks=["B2", "X5"])
class UnknownElementsAreErrors(Frames):
    """Refuses control messages with elements that it does not know."""

    def __init__(self) -> None:
        self.codec = StrictCodec()


@mutant("future-refusals-are-success", tag="data", breaks=["X5"], aims=["NET-4.02"])
class FutureRefusalsAreSuccess(Requests):
    """Takes a status whose category it does not know for success."""

    def complete(self, frame: Response, found: Waiting) -> None:
        if isinstance(frame, StatusResponse) and frame.category not in set(Category):
            self.waiting = {n: one for n, one in self.waiting.items() if one is not found}
            found.answer.set_result(frame)
        else:
            super().complete(frame, found)


class _HeldPosts(Posts):
    def acknowledged(self, frame: Ack) -> None:
        held: list[Ack] | None = self.client.__dict__.get("held")
        if held is None:
            super().acknowledged(frame)
        else:
            held.append(frame)


@mutant("one-thread-for-all", tag="life-cycle", breaks=["X10"], aims=["NET-3.07"], also=[_HeldPosts])
class BlazingOneThreadForAll(Deliveries):
    """Looks at no ACK while the callback of a message runs."""

    async def deliver_message(self, delivery: Delivery) -> None:
        held: list[Ack] = []
        self.client.__dict__["held"] = held
        await super().deliver_message(delivery)
        self.client.__dict__["held"] = None
        for frame in held:
            self.client.posts.acknowledged(frame)
