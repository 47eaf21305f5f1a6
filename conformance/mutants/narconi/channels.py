"""A WebSocket with what speaks over it: a `Publisher`, or a `Consumer` and the user's callback."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from conformance.mutants.narconi.consumer import Consumer, Delivery
from conformance.mutants.narconi.errors import ClientError
from conformance.mutants.narconi.publisher import Publisher
from conformance.mutants.narconi.websocket import Message

if TYPE_CHECKING:
    from conformance.mutants.narconi.client import NarconiClient

Callback = Callable[[Delivery], Awaitable[None]]


class Publishing:
    """A WebSocket and the `Publisher` that speaks over it."""

    def __init__(self, client: NarconiClient, queue: str) -> None:
        self._client = client
        self._queue = queue
        self.socket = client.socket(queue, "publish", {}, self._message, self.lost)
        self.core: Publisher = client.publisher_part(self.socket.send, self._failed)

    def _message(self, message: Message) -> None:
        self.core.message(message)

    def _failed(self, error: ClientError) -> None:
        self._client.trouble("read", error)

    @property
    def is_usable(self) -> bool:
        """Whether another message may go this way."""
        return self.socket.is_open and not self.core.is_spent

    def lost(self, error: ClientError | None) -> None:
        """The connection is gone."""
        self.core.lost(error or ClientError("closed", "the session was closed", definite=False))
        if error is not None:
            self._client.publisher_lost(self._queue, self, error)


class Subscription:
    """A WebSocket, the `Consumer` that speaks over it, and the task that feeds the callback.

    Attributes:
        socket, core: Those at the moment; a reconnect replaces them.
    """

    def __init__(
        self, client: NarconiClient, queue: str, callback: Callback, query: Mapping[str, str], *, ack: bool
    ) -> None:
        self._client = client
        self._queue = queue
        self._callback = callback
        self._query = query
        self._ack = ack
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue()
        self._reconnecting: asyncio.Task[None] | None = None
        self._renew()
        self._task = client.background(self._feed())

    def _renew(self) -> None:
        client = self._client
        self.socket = client.socket(self._queue, "consume", self._query, self._message, self.lost)
        self.core: Consumer = client.consumer_part(
            self.socket.send,
            self._waiting.put_nowait,
            self._failed,
            ack=self._ack,
            encoding=self._query.get("encoding"),
        )

    def _message(self, message: Message) -> None:
        self.core.message(message)

    def _failed(self, error: ClientError) -> None:
        self._client.trouble("read", error)

    async def _feed(self) -> None:
        while True:
            delivery = await self._waiting.get()
            try:
                await self._callback(delivery)
            except Exception as error:
                self._client.callback_failed("message", error)
            finally:
                self._waiting.task_done()

    def lost(self, error: ClientError | None) -> None:
        """The connection is gone."""
        self.core.lost()
        if error is not None:
            self._client.tell("connection_lost", error.text, error.code)
            self._reconnecting = self._client.recover(self.reopen)

    async def reopen(self) -> None:
        """Subscribe again. What waits for its acknowledgement comes again too, with new ids."""
        self._renew()
        await self._client.open(self.socket)

    async def drain(self) -> None:
        """The graceful end: no more deliveries, those that came are processed and acknowledged."""
        self.core.stop()
        await self.socket.barrier()
        await self._waiting.join()
        while self.core.outstanding and self.socket.is_open:
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Close properly; what is not acknowledged goes back to the queue."""
        self._stop()
        await self.socket.close()
        self._leave_out()
        self._task.cancel()

    def abort(self) -> None:
        """Drop the connection without a Close frame."""
        self._stop()
        self.socket.abort()
        self._leave_out()
        self._task.cancel()

    def _leave_out(self) -> None:
        """Tell what came and will not be surfaced: without acknowledgements the server has it no more."""
        if count := self._waiting.qsize():
            fate = "they go back to the queue" if self._ack else "they are lost"
            self._client.on_note(f"{count} deliveries of {self._queue} were not surfaced: {fate}")

    def _stop(self) -> None:
        if self._reconnecting is not None:
            self._reconnecting.cancel()
