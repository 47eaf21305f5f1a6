"""The reference client of BlazingMQ."""

from __future__ import annotations

import asyncio

from conformance.clients.reference.blazingmq.deliveries import Deliveries
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.posts import Posts
from conformance.clients.reference.blazingmq.queues import Queues
from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, Backoff, ClientError, Runtime
from fakebrokers.blazingmq.frames import Disconnect

ATTEMPT_S = 5.0  #: what a reconnect may take
LASTING_S = 0.2  #: a connection that has lasted so long was a success
CLOSED = "the client is closed"
LATE_S = 0.1  #: what a close may need besides, if it has run out of time
CLOSING = "closeQueueResponse"  #: a queue that is being closed is closed once


class Pauses(Backoff):
    """The pauses before reconnects: none is shorter than the one before."""

    def delay(self) -> float:
        return self.grown_s * self.random.uniform(0.9, 1.1)


class BlazingClient:
    """A session.

    Attributes:
        link: The connection, if there is one.
        last_request: Number of the last control request.
    """

    def __init__(self, runtime: Runtime, endpoint: str, *, reconnects: bool = True) -> None:
        self.runtime = runtime
        self.endpoint = endpoint
        self.reconnects = reconnects
        self.link: Link | None = None
        self.last_request = 0
        self.queues = runtime.part(Queues)(self)
        self.posts = runtime.part(Posts)(self)
        self.deliveries = runtime.part(Deliveries)(self)
        self.pauses = runtime.part(Pauses)(runtime.random, 0.4, 5.0)
        self.is_starting = False
        self._dialled: Link | None = None
        self._closing: asyncio.Task[None] | None = None

    # life

    async def connect(self, timeout: float | None) -> None:
        """Connect and negotiate. Raises `ClientError`."""
        self.is_starting = True
        try:
            await self.dial(DEFAULT_TIMEOUT_S if timeout is None else timeout)
        finally:
            self.is_starting = False
        self.runtime.callbacks.report("connected")

    async def dial(self, timeout: float) -> None:
        """Make a connection. Raises `ClientError`."""
        link = self._dialled = self.runtime.part(Link)(self)
        await link.open(self.endpoint, timeout)
        if self.runtime.is_closed:
            link.end(ClientError("closed", CLOSED))
            raise ClientError("closed", CLOSED)
        if link.state == "ended":  # between the answer and here
            raise ClientError("connection", "the connection ended as it began")
        self.link = link

    def link_ended(self, link: Link, error: ClientError) -> None:
        """A connection is over."""
        if link is not self.link:
            return
        self.link = None
        self.posts.end(error)
        if self.reconnects:
            self.queues.lost()
        if self.runtime.is_closed:
            return
        self.loss_reported(error)
        if link.opened_at and self.runtime.clock.now() - link.opened_at >= LASTING_S:
            self.pauses.reset()
        if self.reconnects:
            self.runtime.tasks.spawn(self.reconnect())

    def loss_reported(self, error: ClientError) -> None:
        """Report to the application that the connection is lost."""
        self.runtime.callbacks.report("connection_lost", error.text)

    async def reconnect(self) -> None:
        """Come back, and open the queues again."""
        try:
            await self.pauses.retry(lambda: self.dial(ATTEMPT_S), self.is_final)
        except ClientError as error:
            self.queues.end()
            self.runtime.callbacks.report("disconnected", error.text)
            return
        self.runtime.callbacks.report("reconnected")
        try:
            await self.queues.restore()
        except ClientError as error:
            self.runtime.callbacks.note(f"lost again while the queues were opened: {error.text}")

    def is_final(self, error: ClientError) -> bool:
        """Whether it makes no sense to try again."""
        return error.kind in ("refused", "closed")

    async def close(self, timeout: float | None = None) -> None:
        """Close the queues, disconnect, end the connection. May be called twice. Raises `ClientError`."""
        seconds = DEFAULT_TIMEOUT_S if timeout is None else timeout
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.stop(seconds))
        try:
            await self.runtime.tasks.join(self._closing, self.runtime.clock.deadline(seconds) + LATE_S)
        finally:
            self._closing.cancel()  # the one with the least time ends it for all

    async def stop(self, timeout: float) -> None:
        """See `close`."""
        self.runtime.is_closed = True
        self.queues.end()
        deadline = self.runtime.clock.deadline(timeout)
        error = ClientError("closed", "the client was closed", definite=False)
        try:
            if self.link is not None and self.link.state == "open":
                self.link.requests.give_up(error, but=CLOSING)
                self.posts.end(error)
                await self.send_disconnect(self.link, deadline)
        finally:
            self.finish(error)

    async def send_disconnect(self, link: Link, deadline: float) -> None:
        """Give the queues back, and disconnect."""
        for queue in tuple(self.queues.by_name.values()):
            if queue not in self.queues.by_name.values():
                continue  # the application has closed it meanwhile
            try:
                await self.queues.shut(queue, deadline - self.runtime.clock.now())
            except ClientError as error:
                if error.kind not in ("refused", "closed"):  # the disconnect gives back what is left
                    raise
            self.queues.forget(queue)  # a callback that still runs has nothing to confirm there
        await link.requests.ask(Disconnect, deadline - self.runtime.clock.now())

    def finish(self, error: ClientError) -> None:
        """Nothing is sent or comes any more; a callback that runs goes on."""
        self.runtime.is_closed = True
        for link in (self.link, self._dialled):
            if link is not None:
                link.end(error)
        self.posts.end(error)
        self.queues.end()
        self.runtime.tasks.end()
        self.deliveries.feed.clear()
        self.deliveries.feed.end()

    def abort(self) -> None:
        """Drop everything at once."""
        self.finish(ClientError("closed", "the client was dropped", definite=False))
        if self._closing is not None:
            self._closing.cancel()
        self.runtime.end()

    # what the parts ask

    def check_open(self) -> None:
        """Raise `ClientError` (closed) if it is not."""
        if self.runtime.is_closed:
            raise ClientError("closed", CLOSED, definite=True)

    def usable(self) -> Link:
        """The connection, unless the client is closed by its user; while it closes, requests still go out."""
        if self._closing is None:
            self.check_open()
        return self.link_now()

    def link_now(self) -> Link:
        """The connection. Raises `ClientError` (connection)."""
        if self.link is None or self.link.state != "open":
            kind = "closed" if self.runtime.is_closed else "connection"
            raise ClientError(kind, "there is no connection", definite=True)
        return self.link

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return not self.runtime.is_closed and self.link is not None and self.link.state == "open"

    @property
    def pending(self) -> int:
        """Requests and posts without an answer."""
        requests = self.link.requests.pending if self.link is not None else 0
        return requests + len(self.posts.pending)

    @property
    def buffered_bytes(self) -> int:
        """Deliveries that wait for their callback."""
        return sum(len(delivery.payload) for delivery in self.deliveries.feed)

    @property
    def timers(self) -> int:
        """One for each op that waits, and that of the heartbeats."""
        watching = self.link is not None and self.link.watchdog.task is not None
        return self.pending + int(watching)
