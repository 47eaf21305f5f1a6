"""Queues of a client: open, configure, close, and open again after a loss."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.clients.reference.kit import ClientError
from fakebrokers.blazingmq.codes import DEFAULT_APP, QueueFlag
from fakebrokers.blazingmq.frames import (
    CloseQueue,
    ConfigureQueueStream,
    ConfigureStream,
    OpenQueue,
)
from fakebrokers.blazingmq.schema import (
    ConsumerInfo,
    HandleParameters,
    QueueStreamParameters,
    StreamParameters,
    SubQueueId,
    Subscription,
)

if TYPE_CHECKING:
    from conformance.clients.reference.blazingmq.client import BlazingClient
    from conformance.clients.reference.blazingmq.deliveries import Delivery

_NAME = r"[-a-zA-Z0-9_.]"
_URI = re.compile(rf"bmq://[-a-zA-Z0-9._]+(\.~[-a-zA-Z0-9._]+)?/{_NAME}{{1,64}}(\?id=({_NAME}+))?", re.A)
LIMITS = {"max_unconfirmed_messages": 1024, "max_unconfirmed_bytes": 32 << 20, "consumer_priority": 0}
NOTHING = QueueStreamParameters()
RESTORE_S = 10.0


class Queue:
    """A handle.

    Attributes:
        q_id, sub_id: Its numbers on the wire; the second only of an app of a fanout queue.
        options: Limits and priority of its consumer.
        callback: Gets the messages.
        early: Those that came before there was a callback.
        ready: Set unless it has to be opened again first.
        shutting: Held by the task that closes it.
    """

    def __init__(self, uri: str, q_id: int, flags: frozenset[str], options: Mapping[str, int]) -> None:
        self.uri = uri
        self.q_id = q_id
        self.read = "read" in flags
        self.write = "write" in flags
        self.options = {**LIMITS, **options}
        found = _URI.fullmatch(uri)
        self.app_id: str | None = found[3] if found else None
        self.sub_id = 1 if self.app_id else 0
        self.callback: Callable[[Delivery], Awaitable[None]] | None = None
        self.early: list[Delivery] = []
        self.shutting = asyncio.Lock()
        self.ready = asyncio.Event()
        self.ready.set()

    async def opened_again(self, timeout: float) -> None:
        """Wait until it may be used."""
        if not self.ready.is_set():
            try:
                await asyncio.wait_for(self.ready.wait(), timeout)
            except TimeoutError:
                raise ClientError("timeout", "the queue is not open again", definite=True) from None

    @property
    def sub_id_info(self) -> SubQueueId | None:
        """Which app of a fanout queue it is."""
        return SubQueueId(self.sub_id, self.app_id) if self.app_id else None


class Queues:
    """Those of one client, by the names that the application gave them."""

    def __init__(self, client: BlazingClient) -> None:
        self.client = client
        self.by_name: dict[str, Queue] = {}
        self.opening: set[str] = set()
        self.last_id = -1
        self.last_subscription = 0

    def find(self, name: str) -> Queue:
        """The queue of that name. Raises `ClientError` (closed)."""
        self.client.check_open()
        if name not in self.by_name:
            raise ClientError("closed", f"no queue {name} is open", definite=True)
        return self.by_name[name]

    def numbered(self, q_id: int) -> Queue | None:
        """The open queue of that number."""
        return next((queue for queue in self.by_name.values() if queue.q_id == q_id), None)

    def next_id(self) -> int:
        """A queue id that no other queue has."""
        self.last_id += 1
        return self.last_id

    def next_subscription(self) -> int:
        """A subscription id that was never used."""
        self.last_subscription += 1
        return self.last_subscription

    # open

    async def open(
        self, name: str, uri: str, flags: frozenset[str], options: Mapping[str, int], timeout: float
    ) -> Queue:
        """Open a queue; a reader is configured too. Raises `ClientError`."""
        self.client.check_open()
        self.check(uri, flags)
        queue = Queue(uri, self.next_id(), flags, options)
        deadline = self.client.runtime.clock.deadline(timeout)
        self.opening.add(uri)
        try:
            await self.ask_open(queue, timeout)
            self.check_wanted()
            self.by_name[name] = queue
            await self.begin(queue, deadline)
        except BaseException:  # of one who does not wait any more, too
            if self.by_name.get(name) is queue:
                del self.by_name[name]
                if self.client.is_open:
                    self.client.runtime.tasks.spawn(self.take_back(queue))
            raise
        finally:
            self.opening.discard(uri)
        return queue

    def check(self, uri: str, flags: frozenset[str]) -> None:
        """What cannot be opened is refused before anything is sent."""
        if not _URI.fullmatch(uri) or not flags:
            raise ClientError("invalid", f"not a queue to open: {uri}")
        if uri in self.opening or any(queue.uri == uri for queue in self.by_name.values()):
            raise ClientError("invalid", f"{uri} is open")

    def check_wanted(self) -> None:
        """After an answer: the Disconnect may have been sent already. Raises `ClientError` (closed)."""
        if self.client.runtime.is_closed:
            raise ClientError("closed", "the client was closed", definite=False)

    def parameters(self, queue: Queue) -> HandleParameters:
        """What openQueue asks for, and closeQueue gives back."""
        flags = QueueFlag.READ if queue.read else 0
        if queue.write:
            flags |= QueueFlag.WRITE | QueueFlag.ACK
        uri = queue.uri.partition("?")[0]
        return HandleParameters(
            uri, queue.q_id, queue.sub_id_info, int(flags), int(queue.read), int(queue.write)
        )

    async def ask_open(self, queue: Queue, timeout: float) -> None:
        """Send openQueue; an answer that comes too late is undone."""
        parameters = self.parameters(queue)

        def late() -> None:
            self.give_back(queue)

        await self.client.usable().requests.ask(lambda number: OpenQueue(number, parameters), timeout, late)

    async def begin(self, queue: Queue, deadline: float) -> None:
        """Configure a reader."""
        if queue.read:
            await self.ask_configure(queue, queue.options, deadline - self.client.runtime.clock.now())

    def give_back(self, queue: Queue) -> None:
        """Close a queue that nobody has, without waiting."""
        if self.client.is_open:
            self.client.runtime.tasks.spawn(self.ask_close(queue, RESTORE_S))

    async def take_back(self, queue: Queue) -> None:
        """Close a queue that may have been configured already: it is drained first, if that works."""
        if queue.read:
            with suppress(ClientError):
                await self.ask_configure(queue, None, RESTORE_S)
        await self.ask_close(queue, RESTORE_S)

    # configure

    async def configure(self, name: str, options: Mapping[str, int], timeout: float) -> None:
        """Configure a reader anew. Raises `ClientError`; then the old configuration stays."""
        queue = self.find(name)
        if not queue.read:
            raise ClientError("invalid", "the queue is not open for read")
        changed = {**LIMITS, **options}
        deadline = self.client.runtime.clock.deadline(timeout)
        await self.usable_again(queue, timeout)
        await self.ask_configure(queue, changed, deadline - self.client.runtime.clock.now())
        queue.options = changed

    async def usable_again(self, queue: Queue, timeout: float) -> None:
        """Wait until a new connection has the queue; without any there is nothing to wait for."""
        self.client.usable()
        await queue.opened_again(timeout)
        if queue not in self.by_name.values():
            raise ClientError("closed", "the queue is closed", definite=True)

    async def ask_configure(self, queue: Queue, options: Mapping[str, int] | None, timeout: float) -> None:
        """Send the request that the broker knows; without options the reader takes nothing."""
        link = self.client.usable()
        newer = "SUBSCRIPTIONS:CONFIGURE_STREAM" in link.handshake.features
        make = self.newer(queue, options) if newer else self.older(queue, options)
        await link.requests.ask(make, timeout)

    def newer(self, queue: Queue, options: Mapping[str, int] | None) -> Callable[[int], ConfigureStream]:
        """configureStream."""
        subscriptions: tuple[Subscription, ...] = ()
        if options is not None:
            consumer = ConsumerInfo(**options, consumer_priority_count=1)
            subscriptions = (Subscription(self.next_subscription(), consumers=(consumer,)),)
        parameters = StreamParameters(queue.app_id or DEFAULT_APP, subscriptions)
        return lambda number: ConfigureStream(number, queue.q_id, parameters)

    def older(self, queue: Queue, options: Mapping[str, int] | None) -> Callable[[int], ConfigureQueueStream]:
        """configureQueueStream, for brokers that know no other."""
        parameters = NOTHING
        if options is not None:
            parameters = QueueStreamParameters(queue.sub_id_info, **options, consumer_priority_count=1)
        return lambda number: ConfigureQueueStream(number, queue.q_id, parameters)

    # close

    async def close(self, name: str, timeout: float) -> None:
        """Close a queue. Raises `ClientError`."""
        queue = self.find(name)
        deadline = self.client.runtime.clock.deadline(timeout)
        await self.usable_again(queue, timeout)
        await self.shut(queue, deadline - self.client.runtime.clock.now())
        self.forget(queue)

    def forget(self, queue: Queue) -> None:
        """A queue is closed."""
        for name, there in tuple(self.by_name.items()):
            if there is queue:
                del self.by_name[name]

    async def shut(self, queue: Queue, timeout: float) -> None:
        """Drain a reader, then close."""
        deadline = self.client.runtime.clock.deadline(timeout)
        is_second = queue.shutting.locked()
        try:
            async with asyncio.timeout(max(0.0, timeout)):
                await queue.shutting.acquire()
        except TimeoutError:
            raise ClientError("timeout", f"another close of {queue.uri} goes on") from None
        try:
            if is_second and queue not in self.by_name.values():
                raise ClientError("closed", f"{queue.uri} was closed meanwhile", definite=True)
            if queue.read:
                try:
                    await self.ask_configure(queue, None, timeout / 2)
                except ClientError as error:
                    if error.kind != "timeout":  # closeQueue drops the consumer all the same
                        raise
            await self.ask_close(queue, deadline - self.client.runtime.clock.now())
        finally:
            queue.shutting.release()

    async def ask_close(self, queue: Queue, timeout: float) -> None:
        """Send closeQueue; one that is answered too late has closed the queue all the same."""
        parameters = self.parameters(queue)

        def late() -> None:
            self.forget(queue)

        await self.client.link_now().requests.ask(
            lambda number: CloseQueue(number, parameters, is_final=True), timeout, late
        )

    # loss

    def lost(self) -> None:
        """The connection is gone: each queue has to be opened again before it can be used."""
        for queue in self.by_name.values():
            queue.ready.clear()

    async def restore(self) -> None:
        """Open all again. Raises `ClientError` (connection)."""
        link = self.client.link_now()
        for name, queue in tuple(self.by_name.items()):
            try:
                await self.open_again(queue)
            except ClientError as error:
                if error.kind == "connection":
                    raise
                self.by_name.pop(name, None)
                self.client.runtime.callbacks.report("target_closed", error.text, error.code, queue.uri)
            if self.client.link is not link:  # the last answer came with the end of the connection
                raise ClientError("connection", "the connection is gone")
            queue.ready.set()

    async def open_again(self, queue: Queue) -> None:
        """Open one queue on a new connection."""
        await self.ask_open(queue, RESTORE_S)
        try:
            await self.begin(queue, self.client.runtime.clock.deadline(RESTORE_S))
        except ClientError:
            self.give_back(queue)
            raise
        self.client.runtime.callbacks.report("target_reopened", "", None, queue.uri)

    def end(self) -> None:
        """The client is closed: nobody waits for a queue any more."""
        for queue in self.by_name.values():
            queue.ready.set()
