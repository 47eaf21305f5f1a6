"""What speaks over WebSockets: the publishers of the queues, and subscriptions with the user's callbacks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Feed, Runtime, WaitQueue
from conformance.clients.reference.narconi.api import Metadata
from conformance.clients.reference.narconi.consumer import Consumer, Delivery
from conformance.clients.reference.narconi.publisher import Publisher
from conformance.clients.reference.narconi.websocket import Message
from conformance.clients.reference.narconi.websockets import WebSockets

Callback = Callable[[Delivery], Awaitable[None]]


class Publishing:
    """A WebSocket and the `Publisher` that speaks over it."""

    def __init__(self, publishers: Publishers, queue: str) -> None:
        self._publishers = publishers
        self._queue = queue
        runtime, websockets = publishers.runtime, publishers.websockets
        self.socket = websockets.socket(queue, "publish", {}, self._message, self.lost)
        self.core = runtime.part(Publisher)(
            self.socket.send, lambda error: runtime.callbacks.trouble("read", error)
        )

    def _message(self, message: Message) -> None:
        self.core.message(message)

    @property
    def is_usable(self) -> bool:
        """Whether another message may go this way."""
        return self.socket.is_open and not self.core.is_spent

    def lost(self, error: ClientError | None) -> None:
        """The connection is gone."""
        self.core.lost(error or ClientError("closed", "the session was closed"))
        if error is not None:
            self._publishers.lost(self._queue, self, error)


class Publishers:
    """A publishing connection for each queue, made for the first message and anew for the next one when it is
    gone; with `Settings.auto_reconnect` at once. No message is repeated.
    """

    def __init__(self, runtime: Runtime, websockets: WebSockets) -> None:
        self.runtime = runtime
        self.websockets = websockets
        self.by_queue: dict[str, asyncio.Task[Publishing]] = {}
        self._lines: defaultdict[str, WaitQueue] = defaultdict(WaitQueue)

    async def publisher(self, queue: str) -> Publishing:
        """The publishing connection of a queue, made if there is none that can be used."""
        task = self.by_queue.get(queue)
        if task is None or (task.done() and (task.exception() or not task.result().is_usable)):
            tasks = self.runtime.tasks
            task = tasks.spawn(tasks.within(DEFAULT_TIMEOUT_S, self.open(queue)))
            self.by_queue[queue] = task
        return await self.runtime.tasks.join(task, definite=True)

    async def open(self, queue: str) -> Publishing:
        """A new publishing connection."""
        made = Publishing(self, queue)
        await self.websockets.open(made.socket)
        return made

    def lost(self, queue: str, lost: Publishing, error: ClientError) -> None:
        """A connection is gone; messages from now on wait for the next one, if this was in use."""
        self.runtime.callbacks.report("connection_lost", error.text, error.code)
        if lost in self.standing():
            task = self.websockets.recover(lambda: self.open(queue))
            if task is not None:
                self.by_queue[queue] = task

    async def publish(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        """Publish over the WebSocket; returns when the server has confirmed.

        Who stops waiting gives the WebSocket up: a confirm that comes late looks like the next one.
        """
        self.runtime.part(Metadata)().check(headers)
        publishing = await self._lines[queue].after(self.publisher(queue))
        outcome: asyncio.Future[ClientError | None] = asyncio.get_running_loop().create_future()

        def done(error: ClientError | None) -> None:
            if not outcome.done():
                outcome.set_result(error)

        publishing.core.publish(headers, body, done)
        try:
            error = await outcome
        except asyncio.CancelledError:
            self.overdue(publishing)
            raise
        if error is not None:
            raise error

    def overdue(self, publishing: Publishing) -> None:
        """No one waits any more for a confirm that may still come."""
        self.websockets.begin_anew()  # it is this side that ends it
        publishing.socket.give_up("a confirm is overdue")

    def standing(self) -> list[Publishing]:
        """Those that were opened."""
        done = [task for task in self.by_queue.values() if task.done() and not task.cancelled()]
        return [task.result() for task in done if task.exception() is None]

    @property
    def pending(self) -> int:
        """Messages without an outcome."""
        return sum(len(one.core.pending) for one in self.standing())


class Subscription:
    """A WebSocket, the `Consumer` that speaks over it, and the feed of the callback.

    Attributes:
        socket, core: Those at the moment; a reconnect replaces them.
    """

    def __init__(
        self, websockets: WebSockets, queue: str, callback: Callback, query: Mapping[str, str], *, ack: bool
    ) -> None:
        self._websockets = websockets
        self._runtime = websockets.runtime
        self._queue = queue
        self._callback = callback
        self._query = query
        self._ack = ack
        self._feed: Feed[Delivery] = Feed(self._runtime.feeds, self._deliver_message)
        self._reconnecting: asyncio.Task[None] | None = None
        self._is_closing = False
        self._left_out = 0  #: deliveries for which no callback was begun
        self._renew()

    def _renew(self) -> None:
        callbacks = self._runtime.callbacks
        self.socket = self._websockets.socket(self._queue, "consume", self._query, self._message, self.lost)
        self.core = self._runtime.part(Consumer)(
            self.socket.send,
            self._feed.put,
            lambda error: callbacks.trouble("read", error),
            ack=self._ack,
            encoding=self._query.get("encoding"),
        )

    def _message(self, message: Message) -> None:
        self.core.message(message)

    async def _deliver_message(self, delivery: Delivery) -> None:
        if self._is_closing:
            self._left_out += 1
            return
        await self._runtime.callbacks.contain_async("message", lambda: self._callback(delivery))

    def lost(self, error: ClientError | None) -> None:
        """The connection is gone."""
        self.core.lost()
        if error is not None:
            self._runtime.callbacks.report("connection_lost", error.text, error.code)
            self._reconnecting = self._websockets.recover(self.reopen)

    async def reopen(self) -> None:
        """Subscribe again. What waits for its acknowledgement comes again too, with new ids."""
        self._renew()
        await self._websockets.open(self.socket)

    async def drain(self) -> None:
        """The graceful end: no more deliveries, those that came are processed and acknowledged."""
        self.core.stop()
        await self.socket.barrier()
        await self._feed.drained()
        while self.core.outstanding and self.socket.is_open:
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Close properly; what is not acknowledged goes back to the queue."""
        self._stop()
        await self.socket.close()
        self._leave_out()

    def abort(self) -> None:
        """Drop the connection without a Close frame."""
        self._stop()
        self.socket.abort()
        self._leave_out()

    def _stop(self) -> None:
        """A callback that runs may end; no other is begun, whatever still comes."""
        self._is_closing = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()

    def _leave_out(self) -> None:
        """Report what came and will not be delivered: without acknowledgements the server has it no more."""
        if count := len(self._feed) + self._left_out:
            fate = "they go back to the queue" if self._ack else "they are lost"
            self._runtime.callbacks.note(f"{count} deliveries of {self._queue} were not delivered: {fate}")
        self._feed.abort()
