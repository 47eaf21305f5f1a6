"""Defects in heartbeats, closing, and streams that move (catalogue section RMQS-5)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

from conformance.mutants.rabbitmq_stream.client import StreamClient
from conformance.mutants.rabbitmq_stream.connection import Connection
from conformance.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.link import Link
from conformance.mutants.rabbitmq_stream.locating import Located
from conformance.mutants.rabbitmq_stream.publisher import Publisher
from conformance.mutants.rabbitmq_stream.subscription import Subscription
from conformance.mutants.registry import mutant
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Close, MetadataUpdate
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata

# liveness


@mutant("beats-too-late", breaks=["R16", "R18", "X3"])
class BeatsTooLate(Connection):
    """Sends a Heartbeat only after two and a half periods."""

    def heartbeat_due(self) -> float | None:
        return self.last_sent + 2.5 * self.heartbeat_s if self.is_beating() else None


@mutant("silence-ends-quietly", breaks=["R18", "X3"])
class SilenceEndsQuietly(StreamClient):
    """Takes the loss of a silent connection for a close that its user wanted."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        if error.text.startswith("nothing came"):
            self.links.remove(link)
            for user in self.users_of(link):
                self.detach(user, error)
            return
        super().link_ended(link, error)

    @property
    def is_open(self) -> bool:
        return not self.is_closed


class _Absent(Connection):
    """Beats only while no callback runs."""

    is_busy = False

    def heartbeat_due(self) -> float | None:
        due = super().heartbeat_due()
        return max(due, self.now + 0.5) if due is not None and self.is_busy else due

    def handle_timer(self, now: float) -> None:
        if self.is_busy:
            self.now = now
            self.expire_requests(now)
        else:
            super().handle_timer(now)


@mutant("callback-stops-heartbeats", breaks=["R18", "X3"])
class CallbackStopsHeartbeats(StreamClient):
    """Sends no Heartbeat while a callback runs."""

    connection_type = _Absent

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        cores: list[Any] = [link.core for link in self.links]
        for core in cores:
            core.is_busy = True
        await super().contain_async(callback, act)
        for core in cores:
            core.is_busy = False
            core.owner.flush()


@mutant("loss-unnoticed", breaks=["R17", "R18", "X2", "X6", "X11"])
class LossUnnoticed(Connection):
    """Does not notice that an open connection has ended."""

    def lost(self, now: float, problem: str) -> None:
        if self.state != "open" or self.closing:
            super().lost(now, problem)


# closing


@mutant("server-close-unanswered", breaks=["R17", "X7"])
class ServerCloseUnanswered(Connection):
    """Does not answer the server's Close."""

    def close_asked(self, frame: Close) -> None:
        self.end(ClientError("closed", frame.reason, code=frame.code, definite=False))


@mutant("server-close-ignored", breaks=["R17", "X7"])
class ServerCloseIgnored(Connection):
    """Skips the server's Close."""

    def close_asked(self, frame: Close) -> None:
        pass


@mutant("server-close-untold", breaks=["R17", "X7"])
class ServerCloseUntold(StreamClient):
    """Tells nobody that the server has closed the connection, and does not come back."""

    def link_ended(self, link: Link, error: ClientError) -> None:
        if error.kind == "closed" and not self.is_closed:
            self.links.remove(link)
            for user in self.users_of(link):
                self.detach(user, error)
            return
        super().link_ended(link, error)


@mutant("close-without-goodbye", breaks=["R17", "X7"])
class CloseWithoutGoodbye(Link):
    """Ends the connection without a Close."""

    async def close(self, deadline: float) -> None:
        self.drop(ClientError("closed", "the client was closed"))


@mutant("close-waits-for-ever", breaks=["R17", "X7"])
class CloseWaitsForEver(StreamClient):
    """Closing has no time-out."""

    async def close(self, timeout: float | None = None) -> None:
        await super().close(10_000.0)


@mutant("unanswered-close-keeps-socket", breaks=["R17", "X7"])
class UnansweredCloseKeepsSocket(Link):
    """Leaves the socket open when its Close is not answered."""

    async def close(self, deadline: float) -> None:
        wire = self._wire
        keeps = asyncio.get_running_loop().call_at(deadline - 0.01, self._let_go)
        await super().close(deadline)
        keeps.cancel()
        if wire is not None:
            wire.close()

    def _let_go(self) -> None:
        self._wire = None


@mutant("second-close-fails", breaks=["R17"])
class SecondCloseFails(StreamClient):
    """Says Close again when it is closed twice, and waits for the answer."""

    async def close(self, timeout: float | None = None) -> None:
        if self._closing is not None:
            await asyncio.sleep(10_000.0)
        await super().close(timeout)


@mutant("close-empties-the-queue", breaks=["R9", "R17", "X7"])
class CloseEmptiesTheQueue(StreamClient):
    """Surfaces everything that has come before it closes."""

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        super().stop(subscription, True)

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        await super().settled(ended, math.inf)

    async def close(self, timeout: float | None = None) -> None:
        await super().close(10_000.0)


@mutant("surfaces-after-close", breaks=["R9", "R17", "X7"])
class SurfacesAfterClose(StreamClient):
    """Goes on surfacing what has come after it is closed."""

    def stop(self, subscription: Subscription, drain: bool = False) -> None:
        super().stop(subscription, True)

    async def settled(self, ended: list[Subscription], deadline: float) -> None:
        for subscription in ended:
            self.subscriptions.pop(subscription, None)


@mutant("crossing-close-waits", breaks=["R17"])
class CrossingCloseWaits(Connection):
    """Waits for the answer to its Close although the server has said goodbye and ended the connection."""

    def close_asked(self, frame: Close) -> None:
        if not self.closing:
            super().close_asked(frame)

    def lost(self, now: float, problem: str) -> None:
        if not self.closing:
            super().lost(now, problem)


@mutant("reconnects-after-close", breaks=["R9", "X7"])
class ReconnectsAfterClose(StreamClient):
    """Goes on reconnecting when it is closed meanwhile."""

    async def reconnect(self) -> None:
        work = super().reconnect()
        self.survivor = asyncio.get_running_loop().create_task(work)

    async def recover(self, user: Publisher | Subscription) -> None:
        user.is_closed = False
        self.survivors = asyncio.get_running_loop().create_task(super().recover(user))

    async def _close(self, deadline: float) -> None:
        await super()._close(deadline)
        self.is_closed = not self.is_reconnecting


@mutant("session-leaks-a-task", breaks=["R17", "X9"])
class SessionLeaksATask(StreamClient):
    """Leaves a task behind for each session."""

    async def _close(self, deadline: float) -> None:
        await super()._close(deadline)
        self.spawn(asyncio.sleep(10_000.0))


@mutant("closed-sockets-stay", breaks=["R17", "X9"])
class ClosedSocketsStay(Link):
    """Says goodbye, but leaves the socket to the server."""

    kept: list[Any] = []  # noqa: RUF012 - a leak

    def drop(self, error: ClientError) -> None:
        self.kept.append(self._wire)
        self._wire = None
        super().drop(error)

    def eof_received(self) -> bool:
        return True


# topology


@mutant("metadata-update-ignored", breaks=["R14"])
class MetadataUpdateIgnored(Connection):
    """Does nothing when the server tells that a stream is gone."""

    def metadata_updated(self, frame: MetadataUpdate) -> None:
        pass


@mutant("metadata-update-closes-all", breaks=["R14"])
class MetadataUpdateClosesAll(StreamClient):
    """Ends all publishers and subscriptions of a connection when one stream is gone."""

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        for user in self.users_of(link):
            super().stream_moved(link, user.stream, code)
            self.close_user(user, ClientError("closed", "metadata update", code=code, definite=False))


@mutant("deleted-stream-untold", breaks=["R13", "R14", "X6"])
class DeletedStreamUntold(StreamClient):
    """Looks for a deleted stream for ever, and tells nobody."""

    def close_user(self, user: Publisher | Subscription, error: ClientError) -> None:
        if isinstance(user, Publisher):
            user.end_all(error)

    async def declared(self, publisher: Publisher, deadline: float) -> None:
        while publisher in self.recovering or (publisher.connection is None and publisher.next_id > 1):
            await asyncio.sleep(1.0)
        await super().declared(publisher, deadline)


@mutant("looks-without-pause", breaks=["R13", "R14", "X6"])
class LooksWithoutPause(StreamClient):
    """Asks for a stream that is not available, or gone, a hundred times a second."""

    async def recover(self, user: Publisher | Subscription) -> None:
        for _ in range(400):
            try:
                await self.until(lambda: self.control is not None, math.inf)
                await self.reattach(user)
                break
            except ClientError:
                await asyncio.sleep(0.01)
        self.recovering.discard(user)
        await super().recover(user) if user.connection is None else self.progress()


@mutant("leader-is-remembered", breaks=["R13", "R14"])
class LeaderIsRemembered(StreamClient):
    """Asks only once where a stream lives."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.known: dict[str, Located] = {}

    async def locate(self, stream: str, deadline: float) -> Located:
        if stream not in self.known:
            self.known[stream] = await super().locate(stream, deadline)
        return self.known[stream]


@mutant("moved-stream-is-closed", breaks=["R13", "R14"])
class MovedStreamIsClosed(StreamClient):
    """Gives publishers and subscriptions up when their stream moves."""

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        for user in self.users_of(link, stream):
            error = ClientError("closed", "the stream has moved", code=code, definite=False)
            self.detach(user, error)
            self.close_user(user, error)


@mutant("consumer-stays-behind", breaks=["R13", "R14", "X6"])
class ConsumerStaysBehind(StreamClient):
    """Brings publishers back after a loss, but forgets subscriptions."""

    async def recover(self, user: Publisher | Subscription) -> None:
        if isinstance(user, Publisher):
            await super().recover(user)


@mutant("publisher-stays-behind", breaks=["R13", "R14", "X6"])
class PublisherStaysBehind(StreamClient):
    """Brings subscriptions back after a loss; publishers wait for ever."""

    async def recover(self, user: Publisher | Subscription) -> None:
        if isinstance(user, Subscription):
            await super().recover(user)


@mutant("unknown-update-stops-the-reader", breaks=["R14", "R20"])
class UnknownUpdateStopsTheReader(DeafConnection):
    """Its reader dies at a MetadataUpdate with a code other than 6, or of a stream that it does not use."""

    def metadata_updated(self, frame: MetadataUpdate) -> None:
        streams = {one.stream for one in self.publishers.values()}
        streams |= {one.stream for one in self.subscriptions.values()}
        if frame.code != Code.STREAM_NOT_AVAILABLE or frame.stream not in streams:
            self.go_deaf()
        else:
            super().metadata_updated(frame)


@mutant("leaderless-stream-crashes", breaks=["R13"])
class LeaderlessStreamCrashes(StreamClient):
    """Looks a leader up that is not in the list."""

    async def locate(self, stream: str, deadline: float) -> Located:
        answer = await self.metadata([stream], deadline)
        nodes = {broker.reference: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        entry = self.entry_of(answer, stream)
        if entry.code != Code.OK:
            return await super().locate(stream, deadline)
        return Located(nodes[entry.leader], [nodes[reference] for reference in entry.replicas])


@mutant("metadata-by-position", breaks=["R13"])
class MetadataByPosition(StreamClient):
    """Takes the streams of a Metadata answer in the order of the question."""

    asked: list[str] = []  # noqa: RUF012 - replaced, never changed

    async def metadata(self, streams: list[str], deadline: float) -> Any:
        self.asked = streams
        return await super().metadata(streams, deadline)

    def entry_of(self, answer: Any, stream: str) -> StreamMetadata:
        return answer.streams[self.asked.index(stream)]  # type: ignore[no-any-return]


@mutant("first-endpoint-only", breaks=["R14", "X6"])
class FirstEndpointOnly(StreamClient):
    """Never tries any but the first endpoint."""

    async def connect_control(self, deadline: float) -> None:
        self.endpoints = self.endpoints[:1]
        await super().connect_control(deadline)


@mutant("login-storm", breaks=["R15", "X6"])
class LoginStorm(StreamClient):
    """Repeats a refused login after a reconnect ten times a second."""

    def is_final(self, error: ClientError) -> bool:
        return False

    def delay(self, failures: int) -> float:
        return 0.1


@mutant("never-reconnects", breaks=["R9", "R14", "R17", "R18", "X6"])
class NeverReconnects(StreamClient):
    """Says that it reconnects, and does not."""

    async def reconnect(self) -> None:
        self.tell("reconnecting")
