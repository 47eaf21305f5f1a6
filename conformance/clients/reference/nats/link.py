"""One connection to a NATS server, driven with asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

from conformance.clients.reference.kit import ClientError, Runtime, Wire
from conformance.clients.reference.nats import wire
from conformance.clients.reference.nats.settings import Settings


class Owner(Protocol):
    """Whom a connection reports to, once it is ready."""

    def take(self, message: wire.Message) -> None:
        """A message has come."""

    def informed(self, info: Mapping[str, Any]) -> None:
        """The server has said what it is, or how that has changed."""

    def lost(self, link: Link, text: str) -> None:
        """The connection has ended, and nobody here has ended it."""


class Link(asyncio.Protocol):
    """Open it once; a lost one is replaced by another.

    Attributes:
        info: What the server has said last about itself.
        ready_at: When its handshake was done; None before.
        complaint: What the server has said last that is wrong.
    """

    def __init__(self, runtime: Runtime, settings: Settings, owner: Owner) -> None:
        self.runtime = runtime
        self.settings = settings
        self.owner = owner
        self.parser = runtime.part(wire.Parser)()
        self.info: dict[str, Any] = {}
        self.ready_at: float | None = None
        self.has_inbox = False
        self.unanswered = 0  #: PINGs of `keep_alive`
        self._wire: Wire | None = None
        self._pongs: deque[asyncio.Future[None]] = deque()
        self._greeted = _future()
        self._beating: asyncio.Task[None] | None = None
        self._is_ended = False
        self._failure: ClientError | None = None
        self.complaint = ""

    async def open(self, endpoint: str) -> None:
        """Connect and be taken in. Raises `ClientError`; then nothing is left open."""
        try:
            self._wire = await self.runtime.network.dial(endpoint, lambda: self)
            await self._greeted
            self.write(wire.connect(self.settings.greeting()))
            await self.ping()
        except OSError as error:
            raise ClientError("connection", str(error), definite=True) from None
        except BaseException:
            self.abort()
            raise
        self._beating = self.runtime.tasks.spawn(self.keep_alive())

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return self.ready_at is not None and not self._is_ended

    def write(self, data: bytes) -> None:
        """Send bytes. Raises `ClientError` (connection, definite)."""
        if self._is_ended or self._wire is None:
            raise ClientError("connection", "there is no connection", definite=True)
        self._wire.write(data)

    def ping(self) -> asyncio.Future[None]:
        """Ask for a PONG: then the server has taken in all that was sent before."""
        self.write(b"PING\r\n")
        answer = _future()
        self._pongs.append(answer)
        return answer

    async def keep_alive(self) -> None:
        """Ask now and then whether the server is there; one that does not answer is given up."""
        while not self._is_ended:
            await asyncio.sleep(self.settings.ping_interval_s)
            if self._is_ended:
                return
            if self.unanswered >= self.settings.max_pings:
                self.fail(ClientError("connection", f"stale: {self.unanswered} PINGs without an answer"))
                return
            self.unanswered += 1
            self.ping()

    def doubt(self) -> None:
        """Somebody waits for a PONG no more: where several are missing, the server is given up."""
        if sum(answer.done() for answer in self._pongs) > self.settings.max_pings:
            self.fail(ClientError("connection", "stale: several PINGs without an answer"))

    def close(self) -> None:
        """End it, after what was written."""
        self._end(ClientError("closed", "the client was closed"))
        if self._wire is not None:
            self._wire.close()

    def abort(self) -> None:
        """Drop it."""
        self._end(ClientError("closed", "the client was closed"))
        if self._wire is not None:
            self._wire.abort()

    def fail(self, error: ClientError) -> None:
        """Give it up."""
        self._failure = error
        if self._wire is not None:
            self._wire.abort()

    def _end(self, error: ClientError) -> None:
        self._is_ended = True
        if self._beating is not None:
            self._beating.cancel()
        for answer in (self._greeted, *self._pongs):
            if not answer.done():
                answer.set_exception(error)
        self._pongs.clear()

    # asyncio

    def data_received(self, data: bytes) -> None:
        if self._is_ended or self._failure is not None:
            return
        try:
            for came in self.parser.feed(data):
                if isinstance(came, wire.Message):
                    self.owner.take(came)
                else:
                    self.control(came)
        except ClientError as error:
            self.runtime.callbacks.trouble("read", error)
            self.fail(error)

    def control(self, line: wire.Line) -> None:
        """What is no message."""
        match line.verb:
            case b"INFO":
                self.info = wire.object_of(line.rest)
                self.owner.informed(self.info)
                if not self._greeted.done():
                    self._greeted.set_result(None)
            case b"PING":
                self.write(b"PONG\r\n")
            case b"PONG":
                self.ponged()
            case b"-ERR":
                self.complained(line.rest.strip().strip(b"'").decode(errors="replace"))
            case b"+OK":
                pass
            case _:
                raise ClientError("protocol", f"unknown: {line.verb[:20]!r}")

    def ponged(self) -> None:
        """The oldest PING is answered."""
        if not self._pongs:
            self.runtime.callbacks.note("a PONG that nobody had asked for was dropped")
            return
        if self.ready_at is None:
            self.ready_at = self.runtime.clock.now()
        self.unanswered = 0
        answer = self._pongs.popleft()
        if not answer.done():
            answer.set_result(None)

    def complained(self, text: str) -> None:
        """The server has said what is wrong; mostly it hangs up then."""
        self.complaint = text
        if self.ready_at is None:
            self.fail(ClientError("auth" if "auth" in text.lower() else "refused", text, code=text))
        else:
            self.runtime.callbacks.trouble("other", ClientError("refused", text, code=text))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_ended:
            return
        text = str(self._failure or exc or "the server closed the connection")
        was_ready = self.ready_at is not None
        error = None if was_ready else self._failure
        self._end(error or ClientError("connection", text))
        if was_ready:
            self.owner.lost(self, text)


def _future() -> asyncio.Future[None]:
    """One whose error need not be looked at."""
    made: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    made.add_done_callback(lambda done: done.cancelled() or done.exception())
    return made
