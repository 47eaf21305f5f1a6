"""Defects when streams and nodes move or go (catalogue section RMQS-5)."""

from __future__ import annotations

import asyncio
from typing import Any

from conformance.clients.mutants.rabbitmq_stream.deaf import DeafConnection
from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import Backoff, ClientError
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.link import Link
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.rabbitmq_stream.locator import Located, Locator
from conformance.clients.reference.rabbitmq_stream.publisher import Publisher
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery, User
from conformance.clients.reference.rabbitmq_stream.subscription import Subscription
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import MetadataUpdate
from fakebrokers.rabbitmq_stream.wiretypes import StreamMetadata


@mutant("metadata-update-ignored", tag="life-cycle", breaks=["R14"])
class MetadataUpdateIgnored(Connection):
    """Does nothing when the server reports that a stream is gone."""

    def metadata_updated(self, frame: MetadataUpdate) -> None:
        pass


@mutant("metadata-update-closes-all", tag="life-cycle", breaks=["R14"])
class MetadataUpdateClosesAll(Recovery):
    """Ends all publishers and subscriptions of a connection when one stream is gone."""

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        for user in self.users_of(link):
            super().stream_moved(link, user.stream, code)
            self.close_user(user, ClientError("closed", "metadata update", code=code, definite=False))


class _Waiting(Publishing):
    async def declared(self, publisher: Publisher, deadline: float) -> None:
        recovering = self.client.recovery.recovering
        while publisher in recovering or (publisher.connection is None and publisher.next_id > 1):
            await asyncio.sleep(1.0)
        await super().declared(publisher, deadline)


@mutant("deleted-stream-untold", tag="life-cycle", breaks=["R13", "R14", "X6"], also=[_Waiting])
class DeletedStreamUntold(Recovery):
    """Looks for a deleted stream forever, and reports no error."""

    def close_user(self, user: User, error: ClientError) -> None:
        if isinstance(user, Publisher):
            user.end_all(error)


@mutant("looks-without-pause", tag="life-cycle", breaks=["R13", "R14", "X6"])
class LooksWithoutPause(Recovery):
    """Asks for a stream that is not available, or gone, a hundred times a second."""

    async def recover(self, user: User) -> None:
        for _ in range(400):
            try:
                await self.links.until(lambda: self.links.control is not None)
                await self.reattach(user)
                break
            except ClientError:
                await asyncio.sleep(0.01)
        self.recovering.discard(user)
        await super().recover(user) if user.connection is None else self.client.progress()


@mutant("leader-is-remembered", tag="life-cycle", breaks=["R13", "R14"])
class LeaderIsRemembered(Locator):
    """Asks only once where a stream lives."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.known: dict[str, Located] = {}

    async def locate(self, stream: str, deadline: float) -> Located:
        if stream not in self.known:
            self.known[stream] = await super().locate(stream, deadline)
        return self.known[stream]


@mutant("moved-stream-is-closed", tag="life-cycle", breaks=["R13", "R14"])
class MovedStreamIsClosed(Recovery):
    """Gives publishers and subscriptions up when their stream moves."""

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        for user in self.users_of(link, stream):
            error = ClientError("closed", "the stream has moved", code=code, definite=False)
            self.detach(user, error)
            self.close_user(user, error)


@mutant("consumer-stays-behind", tag="life-cycle", breaks=["R13", "R14", "X6"])
class ConsumerStaysBehind(Recovery):
    """Brings publishers back after a loss, but forgets subscriptions."""

    async def recover(self, user: User) -> None:
        if isinstance(user, Publisher):
            await super().recover(user)


@mutant("publisher-stays-behind", tag="life-cycle", breaks=["R13", "R14", "X6"])
class PublisherStaysBehind(Recovery):
    """Brings subscriptions back after a loss; publishers wait forever."""

    async def recover(self, user: User) -> None:
        if isinstance(user, Subscription):
            await super().recover(user)


@mutant("unknown-update-stops-the-reader", tag="wire", breaks=["R14", "R20"])
class UnknownUpdateStopsTheReader(DeafConnection):
    """Its reader ends at a MetadataUpdate with a code other than 6, or of a stream that it does not use."""

    def metadata_updated(self, frame: MetadataUpdate) -> None:
        streams = {one.stream for one in self.publishers.values()}
        streams |= {one.stream for one in self.subscriptions.values()}
        if frame.code != Code.STREAM_NOT_AVAILABLE or frame.stream not in streams:
            self.go_deaf()
        else:
            super().metadata_updated(frame)


@mutant("leaderless-stream-crashes", tag="life-cycle", breaks=["R13"])
class LeaderlessStreamCrashes(Locator):
    """Looks a leader up that is not in the list."""

    async def locate(self, stream: str, deadline: float) -> Located:
        answer = await self.metadata([stream], deadline)
        nodes = {broker.reference: f"{broker.host}:{broker.port}" for broker in answer.brokers}
        entry = self.entry_of(answer, stream)
        if entry.code != Code.OK:
            return await super().locate(stream, deadline)
        return Located(nodes[entry.leader], [nodes[reference] for reference in entry.replicas])


@mutant("metadata-by-position", tag="data", breaks=["R13"])
class MetadataByPosition(Locator):
    """Takes the streams of a Metadata answer in the order of the question."""

    asked: list[str] = []  # noqa: RUF012 - replaced, never changed

    async def metadata(self, streams: list[str], deadline: float) -> Any:
        self.asked = streams
        return await super().metadata(streams, deadline)

    def entry_of(self, answer: Any, stream: str) -> StreamMetadata:
        return answer.streams[self.asked.index(stream)]  # type: ignore[no-any-return]


@mutant("first-endpoint-only", tag="life-cycle", breaks=["R14", "X6"])
class FirstEndpointOnly(Links):
    """Never tries any but the first endpoint."""

    async def connect_control(self, deadline: float) -> None:
        self.endpoints = self.endpoints[:1]
        await super().connect_control(deadline)


class Stream_Hasty(Backoff):
    def delay(self) -> float:
        return 0.1


@mutant("login-storm", tag="life-cycle", breaks=["R15", "X6"], also=[Stream_Hasty])
class LoginStorm(Recovery):
    """Repeats a refused login after a reconnect ten times a second."""

    def is_final(self, error: ClientError) -> bool:
        return False


@mutant("never-reconnects", tag="life-cycle", breaks=["R9", "R14", "R17", "R18", "X6"])
class StreamNeverReconnects(Recovery):
    """Says that it reconnects, and does not."""

    async def reconnect(self) -> None:
        self.runtime.callbacks.report("reconnecting")


@mutant("one-user-moves-with-its-stream", tag="data", breaks=["R17", "R18"])
class OneUserMovesWithItsStream(Recovery):
    """When a stream has moved, brings back one of its consumers and one of its publishers only."""

    def users_of(self, link: Link, stream: str | None = None) -> list[User]:
        found = super().users_of(link, stream)
        return found if stream is None else list({type(user): user for user in reversed(found)}.values())


@mutant("first-replica-only", tag="life-cycle", breaks=["R14", "R18"])
class FirstReplicaOnly(Locator):
    """Consumes from the first replica that Metadata names, and from no other member."""

    async def reader_link(self, stream: str, deadline: float) -> Link:
        where = await self.locate(stream, deadline)
        if not where.replicas:
            return await super().reader_link(stream, deadline)
        return await self.link_to(where.replicas[0], deadline)


@mutant("last-publisher-ends-the-connection", tag="life-cycle", breaks=["R14"])
class LastPublisherEndsTheConnection(Locator):
    """Ends a connection to another node with its last publisher, subscriptions on it or not."""

    def leave(self, link: Link) -> None:
        if link is not self.links.control and link.is_open and not link.core.publishers:
            self.runtime.tasks.spawn(self._part(link))


@mutant("last-subscription-ends-the-connection", tag="life-cycle", breaks=["R14"])
class LastSubscriptionEndsTheConnection(Locator):
    """Ends a connection to another node with its last subscription, publishers on it or not."""

    def leave(self, link: Link) -> None:
        if link is not self.links.control and link.is_open and not link.core.subscriptions:
            self.runtime.tasks.spawn(self._part(link))


@mutant("failed-addresses-are-dropped", tag="life-cycle", breaks=["X6"])
class FailedAddressesAreDropped(Links):
    """Takes an address out of its list when there is no server, but for the last one."""

    async def open(self, endpoint: str, deadline: float) -> Link:
        try:
            return await super().open(endpoint, deadline)
        except ClientError:
            if len(self.endpoints) > 1 and endpoint in self.endpoints:
                self.endpoints.remove(endpoint)
            raise


@mutant("goes-back-to-its-first-server", tag="life-cycle", breaks=["X6"])
class GoesBackToItsFirstServer(Links):
    """Connects again to that server only with which it was connected first."""

    async def connect_control(self, deadline: float) -> None:
        await super().connect_control(deadline)
        assert self.control is not None
        self.endpoints = [self.control.endpoint]
