"""The reference client: connecting, closing, and requests about streams."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from conformance.clients.reference.kit import ClientError, Runtime
from conformance.clients.reference.rabbitmq_stream.consuming import Consuming
from conformance.clients.reference.rabbitmq_stream.links import Links
from conformance.clients.reference.rabbitmq_stream.locator import Locator
from conformance.clients.reference.rabbitmq_stream.publishing import Publishing
from conformance.clients.reference.rabbitmq_stream.recovery import Recovery
from conformance.clients.reference.rabbitmq_stream.settings import Settings
from conformance.clients.reference.rabbitmq_stream.super_streams import SuperStreams
from fakebrokers.rabbitmq_stream.frames import (
    Create,
    Delete,
    QueryOffset,
    QueryPublisherSequence,
    StoreOffset,
    StreamStats,
)

CLOSED = "the client was closed"


class StreamClient:
    """A small correct client of RabbitMQ Stream.

    One connection carries the requests, and everything else whose node it leads to; further nodes get
    connections of their own when a stream lives there.

    Args:
        endpoints: ``host:port`` of the servers to begin with.

    Attributes:
        links, locator, publishing, consuming, super_streams, recovery: Its parts; they find each other here.
    """

    def __init__(self, runtime: Runtime, endpoints: Sequence[str], settings: Settings | None = None) -> None:
        self.runtime = runtime
        self.settings = settings or Settings()
        self.links = runtime.part(Links)(self, endpoints)
        self.locator = runtime.part(Locator)(self)
        self.publishing = runtime.part(Publishing)(self)
        self.consuming = runtime.part(Consuming)(self)
        self.super_streams = runtime.part(SuperStreams)(self)
        self.recovery = runtime.part(Recovery)(self)
        self._connecting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def progress(self) -> None:
        """Something has changed that a task may wait for."""
        self.links.progress()
        self.publishing.progress()

    # life

    async def connect(self, timeout: float | None = None) -> None:
        """Connect to the first endpoint that works. Raises `ClientError`."""
        deadline = self.runtime.clock.deadline(timeout)
        self._connecting = self.runtime.tasks.spawn(self._connect(deadline))
        try:
            await self.runtime.tasks.join(self._connecting, deadline + 0.1)
        except asyncio.CancelledError:
            self._connecting.cancel()
            raise

    async def _connect(self, deadline: float) -> None:
        await self.links.connect_control(deadline)
        self.runtime.callbacks.report("connected")  # at once: a loss that follows is reported after it

    async def close(self, timeout: float | None = None) -> None:
        """End everything gracefully. May be called twice. Raises `ClientError` (timeout)."""
        deadline = self.runtime.clock.deadline(timeout)
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(deadline))
        await self.runtime.tasks.join(self._closing, deadline + 0.1)

    async def _close(self, deadline: float) -> None:
        self.runtime.is_closed = True
        self.runtime.tasks.end()
        for publisher in self.publishing.publishers.values():
            publisher.is_closed = True
        ended = list(self.consuming.subscriptions)
        for subscription in ended:
            self.consuming.stop(subscription)
        closes = [link.close(deadline) for link in self.links.all]
        answers = await asyncio.gather(*closes, return_exceptions=True)
        self.publishing.end(ClientError("closed", CLOSED, definite=False))
        self.progress()
        await self.consuming.settled(ended, deadline)
        for problem in answers:
            if isinstance(problem, ClientError):
                raise problem

    def abort(self) -> None:
        """Drop everything; no Close is sent."""
        self.runtime.end()
        for subscription in self.consuming.subscriptions:
            self.consuming.stop(subscription)
        error = ClientError("closed", "the client was dropped", definite=False)
        for link in tuple(self.links.all):
            link.drop(error)
        self.publishing.end(error)
        self.consuming.subscriptions.clear()
        self.progress()

    # requests: any node knows the answers

    async def create(
        self, stream: str, arguments: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> None:
        """Create a stream. Raises `ClientError`: refused (5) if it exists."""
        deadline = self.runtime.clock.deadline(timeout)
        link = await self.links.control_link(deadline)
        await link.ask(Create, stream, dict(arguments or {}), deadline=deadline)

    async def delete(self, stream: str, timeout: float | None = None) -> None:
        """Delete a stream. Raises `ClientError`: refused (2) if there is none."""
        deadline = self.runtime.clock.deadline(timeout)
        link = await self.links.control_link(deadline)
        await link.ask(Delete, stream, deadline=deadline)

    async def stats(self, stream: str, timeout: float | None = None) -> dict[str, int]:
        """The server's numbers; -1: nothing yet. Raises `ClientError`: refused (2) if there is no stream."""
        deadline = self.runtime.clock.deadline(timeout)
        link = await self.links.control_link(deadline)
        return dict((await link.ask(StreamStats, stream, deadline=deadline)).stats)

    async def store_offset(
        self, stream: str, reference: str, offset: int, timeout: float | None = None
    ) -> None:
        """Remember a position; the server does not answer. Raises `ClientError`: closed, after a close."""
        if self.runtime.is_closed:
            raise ClientError("closed", CLOSED, definite=True)
        link = await self.links.control_link(self.runtime.clock.deadline(timeout))
        link.core.send(StoreOffset(reference, stream, offset))
        link.settle()

    async def query_offset(self, stream: str, reference: str, timeout: float | None = None) -> int:
        """The stored position. Raises `ClientError`: refused (19) if there is none."""
        deadline = self.runtime.clock.deadline(timeout)
        link = await self.links.control_link(deadline)
        answer = await link.ask(QueryOffset, reference, stream, deadline=deadline)
        return int(answer.offset)

    async def query_sequence(self, stream: str, reference: str, timeout: float | None = None) -> int:
        """The highest publishing id of a reference; 0 if there is none. Raises `ClientError`."""
        deadline = self.runtime.clock.deadline(timeout)
        link = await self.links.control_link(deadline)
        answer = await link.ask(QueryPublisherSequence, reference, stream, deadline=deadline)
        return int(answer.sequence)

    # what tests turn, and see

    def set_counter(self, which: str, value: int) -> None:
        """Continue counting elsewhere: ``correlation`` and ``request`` ids, or ``publishing`` ids."""
        if which == "publishing":
            for publisher in self.publishing.publishers.values():
                publisher.next_id = value
        else:
            for link in self.links.all:
                link.core.requests.next_correlation = value

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; without the one for requests others may still carry messages."""
        return not self.runtime.is_closed and any(link.is_open for link in self.links.all)

    @property
    def timers(self) -> int:
        """Timers that are set."""
        return self.publishing.timers + sum(link.has_timer for link in self.links.all)

    @property
    def pending(self) -> int:
        """Requests without an answer, and messages without an outcome."""
        return self.publishing.pending + sum(len(link.core.requests.waiting) for link in self.links.all)

    @property
    def buffered_bytes(self) -> int:
        """Bodies that are kept here: unconfirmed, or waiting for the application."""
        return self.publishing.buffered_bytes + self.consuming.buffered_bytes
