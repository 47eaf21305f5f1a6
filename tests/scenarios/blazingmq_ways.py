"""Correct clients of BlazingMQ that do what the reference client does in another way.

Each is a mapping's value: parts of the client, and how its adapter differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.blazingmq.client import BlazingClient
from conformance.clients.reference.blazingmq.deliveries import Deliveries, Delivery
from conformance.clients.reference.blazingmq.handshake import Handshake
from conformance.clients.reference.blazingmq.link import Link
from conformance.clients.reference.blazingmq.posts import Posts
from conformance.clients.reference.blazingmq.queues import Queue, Queues
from conformance.clients.reference.blazingmq.requests import Requests
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.registry import definition
from fakebrokers.blazingmq.frames import ClientIdentity, Confirm, ConfirmMessage, HeartbeatRequest, Put

CAPS = definition("blazingmq").caps


# who reconnects


class Once(BlazingClient):
    """A lost connection is lost: the application makes a new session."""

    def __init__(self, *args: Any, reconnects: bool = True) -> None:
        super().__init__(*args, reconnects=False)


class LeavesIt(AdapterBase):
    """Declares that."""

    caps = " ".join(word for word in CAPS.split() if word != "auto_reconnect")


class TellsLossOnly(AdapterBase):
    """Says nothing of what it does about a loss, nor that it is back."""

    def emit(self, event: str, **fields: Any) -> None:
        if event != "session" or fields["what"] in (
            "connected",
            "connection_lost",
            "disconnected",
            "target_closed",
        ):
            super().emit(event, **fields)


class SendsAgain(Posts):
    """What has no ACK is sent again on the next connection, as the C++ SDK does."""

    def __init__(self, client: BlazingClient) -> None:
        super().__init__(client)
        self.sent: dict[int, tuple[Queue, Any]] = {}

    def send(self, queue: Queue, body: bytes, properties: Any, zlib_wanted: bool, number: int) -> None:
        super().send(queue, body, properties, zlib_wanted, number)
        if number:
            self.sent[number] = (queue, (body, properties, zlib_wanted, number))

    def forget(self, number: int) -> None:
        super().forget(number)
        self.sent.pop(number, None)

    def end(self, error: ClientError) -> None:
        if not self.client.reconnects or self.client.runtime.is_closed or error.kind == "closed":
            super().end(error)

    def again(self, queue: Queue) -> None:
        """A queue is open again."""
        for number, (there, message) in tuple(self.sent.items()):
            if there is queue and number in self.pending:
                super().send(queue, *message)


class OpensAndSends(Queues):
    """Tells the posts."""

    async def open_again(self, queue: Queue) -> None:
        await super().open_again(queue)
        self.client.posts.again(queue)  # type: ignore[attr-defined]


class FreshNumbers(Queues):
    """A queue that is opened again gets another number."""

    async def open_again(self, queue: Queue) -> None:
        queue.q_id = self.next_id()
        await super().open_again(queue)


# what waits


class FailsAtOnce(Queue):
    """Whoever posts during an outage learns that at once."""

    async def opened_again(self, timeout: float) -> None:
        if not self.ready.is_set():
            raise ClientError("connection", "the queue is not open again", definite=True)


class FailingQueues(Queues):
    """Makes such queues."""

    async def open(self, *args: Any, **more: Any) -> Queue:
        queue = await super().open(*args, **more)
        queue.__class__ = FailsAtOnce
        return queue


class WaitingClient(BlazingClient):
    """Its requests wait for the next connection."""

    async def there(self, timeout: float) -> None:
        """Wait for a connection."""
        deadline = self.runtime.clock.deadline(timeout)
        while self.link is None and self._closing is None and not self.runtime.is_closed and self.reconnects:
            if self.runtime.clock.now() > deadline:
                raise ClientError("timeout", "no connection in time", definite=True)
            await asyncio.sleep(0.02)


class WaitingQueues(Queues):
    """See `WaitingClient`."""

    async def open(self, name: str, uri: str, flags: Any, options: Any, timeout: float) -> Queue:
        await self.client.there(timeout)  # type: ignore[attr-defined]
        return await super().open(name, uri, flags, options, timeout)

    async def configure(self, name: str, options: Any, timeout: float) -> None:
        await self.client.there(timeout)  # type: ignore[attr-defined]
        await self.find(name).opened_again(timeout)
        await super().configure(name, options, timeout)

    async def close(self, name: str, timeout: float) -> None:
        await self.client.there(timeout)  # type: ignore[attr-defined]
        await super().close(name, timeout)


class Retries(BlazingClient):
    """Its first connect is tried again until its deadline."""

    async def connect(self, timeout: float | None) -> None:
        seconds = 5.0 if timeout is None else timeout
        deadline = self.runtime.clock.deadline(seconds)
        while True:
            left = deadline - self.runtime.clock.now()
            try:
                await super().connect(min(left, 5.0))
                return
            except ClientError as error:
                if error.kind != "connection" or self.runtime.is_closed:
                    raise
            left = deadline - self.runtime.clock.now()
            if left <= 0.3:
                await asyncio.sleep(max(0.0, left))
                raise ClientError("timeout", "no session in time")
            await asyncio.sleep(0.3)


# what is ordered, and put together


class Lingering(Posts):
    """Posts wait 20 ms for company."""

    def send(self, queue: Queue, body: bytes, properties: Any, zlib_wanted: bool, number: int) -> None:
        link = self.client.usable()
        if not queue.write:
            raise ClientError("invalid", "the queue is not open for write")
        new_style = "MPS:MESSAGE_PROPERTIES_EX" in link.handshake.features
        packed = self.contents.pack(body, properties, zlib_wanted=zlib_wanted, new_style=new_style)
        message = self.message(queue, packed, number)
        Put((message,))
        link.frames.encode(Put((message,)))  # what is too large is refused now
        waiting = link.__dict__.setdefault("batch", [])
        waiting.append(message)
        if len(waiting) == 1:
            asyncio.get_running_loop().call_later(0.02, self.flush, link)

    def flush(self, link: Link) -> None:
        """Write what waits, many messages in one event."""
        batch, link.__dict__["batch"] = link.__dict__.get("batch", []), []
        while batch:
            size, count = 0, 0
            while count < len(batch) and (count == 0 or size + len(batch[count].data) < 1 << 20):
                size += len(batch[count].data) + 64
                count += 1
            link.send(Put(tuple(batch[:count])))
            batch = batch[count:]


class FlushingClient(BlazingClient):
    """Writes what waits before it closes."""

    async def send_disconnect(self, link: Link, deadline: float) -> None:
        await asyncio.sleep(0.03)
        await super().send_disconnect(link, deadline)


class ConfirmsTogether(Deliveries):
    """Confirms leave together, after a while, and before anything that closes their queue."""

    AFTER_S = 0.2

    def __init__(self, client: BlazingClient) -> None:
        super().__init__(client)
        self.waiting: list[tuple[Link, ConfirmMessage]] = []

    def confirm(self, delivery: Delivery) -> None:
        link = self.client.usable()
        queue = delivery.queue
        if self.client.queues.numbered(queue.q_id) is not queue:
            raise ClientError("closed", "the queue is closed", definite=True)
        self.waiting.append((link, self.message(delivery)))
        if len(self.waiting) == 1:
            asyncio.get_running_loop().call_later(self.AFTER_S, self.flush)

    def flush(self) -> None:
        """Write what waits."""
        waiting, self.waiting = self.waiting, []
        there = [message for link, message in waiting if link is self.client.link]
        if there and self.client.link is not None:
            self.client.link.send(Confirm(tuple(there)))


class ConfirmsFirst(Queues):
    """See `ConfirmsTogether`."""

    async def shut(self, queue: Queue, timeout: float) -> None:
        self.client.deliveries.flush()  # type: ignore[attr-defined]
        await super().shut(queue, timeout)


class AtOnce(Deliveries):
    """Callbacks run side by side."""

    def __init__(self, client: BlazingClient) -> None:
        super().__init__(client)
        self.running: set[asyncio.Task[None]] = set()

    async def deliver_message(self, delivery: Delivery) -> None:
        if delivery.queue.callback is None:
            await super().deliver_message(delivery)
        else:
            self.running.add(task := asyncio.ensure_future(super().deliver_message(delivery)))
            task.add_done_callback(self.running.discard)


# what is on the wire


class OtherNumbers(Queues):
    """Queue ids and subscription ids begin elsewhere."""

    def __init__(self, client: BlazingClient) -> None:
        super().__init__(client)
        self.last_id = 6
        self.last_subscription = 99

    def next_id(self) -> int:
        self.last_id += 2
        return super().next_id()


class RequestsByConnection(Requests):
    """Requests are counted from 0 on each connection."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self.last = -1

    def next_id(self) -> int:
        self.last += 1
        return self.last


class HighPosts(Posts):
    """Correlation ids begin near their end."""

    def __init__(self, client: BlazingClient) -> None:
        super().__init__(client)
        self.last_id = 0xFFFFF0


class Says(Handshake):
    """Says other things of itself."""

    FEATURES = "PROTOCOL_ENCODING:JSON"

    def identity(self) -> ClientIdentity:
        return replace(super().identity(), features=self.FEATURES, process_name="", host_name="")


class OnlyBer(Says):
    """Reads BER alone."""

    FEATURES = "PROTOCOL_ENCODING:BER;MPS:MESSAGE_PROPERTIES_EX;SUBSCRIPTIONS:CONFIGURE_STREAM"


class ClosesDirectly(Queues):
    """A reader is not drained first: closeQueue drops it all the same."""

    async def shut(self, queue: Queue, timeout: float) -> None:
        async with queue.shutting:
            if queue not in self.by_name.values():
                raise ClientError("closed", f"{queue.uri} was closed meanwhile", definite=True)
            await self.ask_close(queue, timeout)


class OnlyDisconnects(BlazingClient):
    """Its goodbye is the disconnect, which gives all queues back."""

    async def send_disconnect(self, link: Link, deadline: float) -> None:
        for queue in tuple(self.queues.by_name.values()):
            self.queues.forget(queue)
        await super().send_disconnect(link, deadline)


class ConfiguresWriters(Queues):
    """Writers are configured too, as older SDKs did."""

    async def begin(self, queue: Queue, deadline: float) -> None:
        options = queue.options if queue.read else None
        await self.ask_configure(queue, options, deadline - self.client.runtime.clock.now())


class Beats(Link):
    """Asks for a sign of life by itself, every second."""

    async def open(self, endpoint: str, timeout: float) -> None:
        await super().open(endpoint, timeout)
        self.client.runtime.tasks.spawn(self.beat())

    async def beat(self) -> None:
        """As long as it is open."""
        while self.state == "open":
            await asyncio.sleep(1.0)
            self.send(HeartbeatRequest())


def allows(**words: bool) -> type[AdapterBase]:
    """Its contract; all else is denied."""
    return type("Declared", (AdapterBase,), {"contract": {"others": False, **words}})


Way = tuple[tuple[type, ...], type[AdapterBase] | None]
WAYS: Mapping[str, Way] = {
    "never-reconnects": ((Once,), LeavesIt),
    "tells-loss-only": ((), TellsLossOnly),
    "sends-again": ((SendsAgain, OpensAndSends), allows(repeats=True)),
    "fresh-numbers": ((FreshNumbers,), None),
    "fails-at-once": ((FailingQueues,), None),
    "waits-for-connection": ((WaitingClient, WaitingQueues), allows(waits=True)),
    "retries": ((Retries,), None),
    "lingers": ((Lingering, FlushingClient), None),
    "confirms-together": ((ConfirmsTogether, ConfirmsFirst), None),
    "at-once": ((AtOnce,), allows(shuffles=True)),
    "other-numbers": ((OtherNumbers, RequestsByConnection, HighPosts), None),
    "json-only": ((Says,), allows(reads_odd=True)),
    "ber-only": ((OnlyBer,), None),
    "closes-directly": ((ClosesDirectly,), None),
    "only-disconnects": ((OnlyDisconnects,), None),
    "configures-writers": ((ConfiguresWriters,), None),
    "beats": ((Beats,), None),
}
