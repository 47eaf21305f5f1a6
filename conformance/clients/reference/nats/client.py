"""The reference client: publishes, listens, asks, and comes back after a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from conformance.clients.reference.kit import ClientError, Runtime, WaitQueue
from conformance.clients.reference.nats import wire
from conformance.clients.reference.nats.link import Link
from conformance.clients.reference.nats.listener import Deliver, Listener
from conformance.clients.reference.nats.settings import Settings

T = TypeVar("T")

ATTEMPT_S = 5.0  #: for one server, where nobody waits for it
FIRST_S, LONGEST_S = 0.2, 4.0  #: pauses before the attempts to come back
WORKED_S = 10.0  #: a connection that was there so long was a good one
NO_RESPONDERS = 503  #: the one status by which a server refuses a request
REFUSALS = 2  #: of a login, after which nobody tries again
WAITING_MAX = 8 << 20  #: bytes of messages that wait for a connection


class NatsClient:
    """One connection at a time, to one of several servers."""

    timers = 0

    def __init__(self, runtime: Runtime, endpoints: Sequence[str], options: Mapping[str, Any]) -> None:
        self.runtime = runtime
        self.settings = runtime.part(Settings)(options)
        self.endpoints = list(endpoints)
        self.discovered: list[str] = []
        self.link: Link | None = None
        self.listeners: dict[str, Listener] = {}
        self.requests: dict[str, asyncio.Future[wire.Message]] = {}
        self.inbox = f"_INBOX.{runtime.random.getrandbits(64):016x}"
        self.backoff = runtime.backoff(FIRST_S, LONGEST_S)
        self.flushing = 0
        self.buffered_bytes = 0  #: of messages that wait for a connection
        self._back: asyncio.Task[None] | None = None  #: the attempts to come back
        self._queue = WaitQueue()
        self._sids = self._asked = self._refusals = 0
        self._at = ""  #: the server of the last connection

    # connections

    async def connect(self, timeout: float | None) -> None:
        """Be taken in by the first server that can be reached."""
        deadline = self.runtime.clock.deadline(timeout)
        task = self.runtime.tasks.spawn(self.open(deadline))
        try:
            await self.runtime.tasks.join(task, deadline)
        except BaseException:
            task.cancel()
            raise
        if self.runtime.is_closed:
            raise ClientError("closed", "the client was closed")
        self.runtime.callbacks.report("connected")

    def servers(self) -> list[str]:
        """All that are known, that of the last connection last."""
        known = list(dict.fromkeys((*self.endpoints, *self.discovered)))
        at = known.index(self._at) + 1 if self._at in known else 0
        return known[at:] + known[:at]

    async def open(self, deadline: float) -> None:
        """Connect to one of the servers. Raises the `ClientError` of the last one."""
        servers = self.servers()
        for number, endpoint in enumerate(servers):
            left_s = deadline - self.runtime.clock.now()
            link = self.runtime.part(Link)(self.runtime, self.settings, self)
            try:
                await asyncio.wait_for(link.open(endpoint), left_s / (len(servers) - number))
                self.use(link, endpoint)
            except TimeoutError:
                failure = ClientError("timeout", f"{endpoint} did not answer in time")
            except ClientError as error:
                failure = error
            else:
                return
        raise failure

    def use(self, link: Link, endpoint: str) -> None:
        """All goes over this connection from now on. Raises `ClientError` if it is over already."""
        if not link.is_open:
            raise ClientError("connection", "the server closed the connection", definite=True)
        self.link, self._at, self._refusals = link, endpoint, 0
        for listener in self.listeners.values():
            link.write(listener.orders())

    def informed(self, info: Mapping[str, Any]) -> None:
        """The server has said which others there are."""
        urls = info.get("connect_urls")
        if isinstance(urls, list):
            self.discovered = [url for url in urls if isinstance(url, str)]

    def lost(self, link: Link, text: str) -> None:
        """What was asked gets no answer any more; a client that may tries to come back."""
        if link is not self.link:
            return
        self.link = None
        self.end_requests(ClientError("connection", text))
        if link.ready_at is not None and self.runtime.clock.now() - link.ready_at > WORKED_S:
            self.backoff.reset()
        if self.runtime.is_closed:
            return
        self.runtime.callbacks.report("connection_lost", text)
        if self.settings.reconnects:
            self._back = self.runtime.tasks.spawn(self.come_back())

    async def come_back(self) -> None:
        """Try until it works, or until the server has refused the login often enough."""
        try:
            await self.backoff.retry(self.again, is_final=self.is_final)
        except ClientError as error:
            self.runtime.callbacks.report("disconnected", str(error), error.code)
        else:
            self.runtime.callbacks.report("reconnected")

    async def again(self) -> None:
        """One attempt at all servers."""
        await self.open(self.runtime.clock.now() + ATTEMPT_S * len(self.servers()))

    def is_final(self, error: ClientError) -> bool:
        """Whether it makes no sense to try again."""
        self._refusals += error.kind == "auth"
        return self._refusals >= REFUSALS

    def need(self) -> Link:
        """The connection. Raises `ClientError` (closed, connection), definite."""
        if self.runtime.is_closed:
            raise ClientError("closed", "the client is closed", definite=True)
        if self.link is None or not self.link.is_open:
            raise ClientError("connection", "there is no connection", definite=True)
        return self.link

    async def reachable(self, deadline: float, size: int = 0) -> None:
        """Wait for the connection while there are attempts to come back, in the order of those who wait.

        Args:
            size: Bytes that wait.
        """
        if self.buffered_bytes + size > WAITING_MAX:
            raise ClientError("connection", f"{self.buffered_bytes} bytes wait already", definite=True)
        self.buffered_bytes += size
        try:
            await self._queue.after(self.attempts(deadline))
        finally:
            self.buffered_bytes -= size

    async def attempts(self, deadline: float) -> None:
        """Until an attempt has worked, or there are no more of them."""
        if self._back is not None and not self._back.done():
            await self.runtime.tasks.join(self._back, deadline, definite=True)

    # publishing

    async def write_message(self, subject: str, body: bytes, deadline: float, reply: str = "") -> Link:
        """Send a message. Raises `ClientError` (invalid, closed, connection, timeout), definite."""
        wire.check_subject(subject)
        await self.reachable(deadline, len(body))
        link = self.need()
        most = link.info.get("max_payload")
        if isinstance(most, int) and 0 < most < len(body):
            raise ClientError("invalid", f"{len(body)} bytes are more than the server takes ({most})")
        if reply and not link.has_inbox:
            link.write(wire.subscribe(f"{self.inbox}.*", "inbox"))
            link.has_inbox = True
        link.write(wire.publish(subject, body, reply))
        return link

    async def flush(self, timeout: float | None) -> None:
        """Wait until the server has taken in all that was sent."""
        deadline = self.runtime.clock.deadline(timeout)
        await self.reachable(deadline)
        await self.synced(self.need(), deadline)

    async def synced(self, link: Link, deadline: float, answer: asyncio.Future[None] | None = None) -> None:
        """The server has answered a PING: one that was sent already, or a new one."""
        self.flushing += 1
        try:
            await self.in_time(answer or link.ping(), deadline)
        except ClientError:
            link.doubt()
            raise
        finally:
            self.flushing -= 1

    async def in_time(self, work: Awaitable[T], deadline: float) -> T:
        """What `work` gives. Raises `ClientError` (timeout)."""
        try:
            return await asyncio.wait_for(work, deadline - self.runtime.clock.now())
        except TimeoutError:
            raise ClientError("timeout", "no answer in time") from None

    async def request(self, subject: str, body: bytes, timeout: float | None) -> wire.Message:
        """Ask, and wait for the first answer. Raises `ClientError` (refused: nobody listens)."""
        deadline = self.runtime.clock.deadline(timeout)
        self._asked += 1
        token = str(self._asked)
        await self.write_message(subject, body, deadline, f"{self.inbox}.{token}")
        waiting: asyncio.Future[wire.Message] = asyncio.get_running_loop().create_future()
        self.requests[token] = waiting
        try:
            answer = await self.in_time(waiting, deadline)
        finally:
            self.forget(token)
        if answer.status == NO_RESPONDERS and not answer.payload:
            raise ClientError("refused", f"status {answer.status}", code=answer.status)
        return answer

    def forget(self, token: str) -> None:
        """Nobody waits for this answer any more."""
        self.requests.pop(token, None)

    def end_requests(self, error: ClientError) -> None:
        """No answer comes any more."""
        for waiting in self.requests.values():
            if not waiting.done():
                waiting.set_exception(error)

    # listening

    async def subscribe(
        self, subject: str, deliver: Deliver, timeout: float | None = None, **options: Any
    ) -> Listener:
        """Listen; done when the server has taken that in."""
        wire.check_subject(subject)
        deadline = self.runtime.clock.deadline(timeout)
        await self.reachable(deadline)
        link = self.need()
        self._sids += 1
        made = self.runtime.part(Listener)(self.runtime, subject, str(self._sids), deliver, **options)
        self.listeners[made.sid] = made
        try:
            link.write(made.orders())
            await self.synced(link, deadline)
        except BaseException:
            self.drop(made)
            made.stop()
            raise
        return made

    def take(self, message: wire.Message) -> None:
        """A message has come: an answer, or one for a listener."""
        waiting = self.requests.get(message.subject.removeprefix(f"{self.inbox}."))
        listener = self.listeners.get(message.sid)
        if waiting is not None and message.sid == "inbox" and not waiting.done():
            waiting.set_result(message)
        elif listener is not None:
            listener.take(message)
            if listener.is_over:
                self.listeners.pop(message.sid, None)
        else:
            self.runtime.callbacks.note(
                f"a message for {message.subject}, which nobody waits for, was dropped"
            )

    def drop(self, listener: Listener) -> None:
        """End a subscription at the server, if there is one."""
        if self.listeners.pop(listener.sid, None) is not None and self.link is not None and self.link.is_open:
            self.link.write(wire.unsubscribe(listener.sid))

    async def unsubscribe(self, listener: Listener, *, drain: bool, timeout: float | None) -> None:
        """End a subscription, at once or when all that was on its way has been handed over."""
        self.drop(listener)
        if not drain:
            listener.stop()
            return
        if self.link is not None and self.link.is_open:
            self.listeners[listener.sid] = listener  # what is on its way still comes
            try:
                await self.flush(timeout)
            finally:
                self.listeners.pop(listener.sid, None)
        listener.end()
        await listener.feed.ended(timeout)

    # the end

    async def drain(self, timeout: float | None) -> None:
        """End all subscriptions, hand over what has come, and close."""
        deadline = self.runtime.clock.deadline(timeout)
        self.need()
        listeners = list(self.listeners.values())
        ends = [self.unsubscribe(one, drain=True, timeout=timeout) for one in listeners]
        try:
            await asyncio.gather(*ends)
            await self.flush(deadline - self.runtime.clock.now())
        finally:
            await self.close(timeout)

    async def close(self, timeout: float | None) -> None:
        """End everything; a callback that runs may end."""
        if self.runtime.is_closed:
            return
        self.runtime.is_closed = True
        self.end_requests(ClientError("closed", "the client was closed"))
        if self.link is not None:
            self.link.close()
        self.runtime.tasks.end()
        listeners = list(self.listeners.values())
        for listener in listeners:
            listener.stop()
        for listener in listeners:
            await listener.feed.ended(timeout)
        await asyncio.sleep(0)  # those who wait get their outcomes first
        self.abort()

    def abort(self) -> None:
        """Drop everything at once."""
        self.runtime.is_closed = True
        self.end_requests(ClientError("closed", "the client was closed"))
        if self.link is not None:
            self.link.abort()
        self.listeners.clear()
        self.runtime.end()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self.link is not None and self.link.is_open

    @property
    def pending(self) -> int:
        """Requests and flushes without an answer."""
        return len(self.requests) + self.flushing
