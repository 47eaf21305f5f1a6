"""One connection on asyncio: carries the bytes and the timers of a `Connection`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.clients.reference.kit import ClientError, Wire
from conformance.clients.reference.rabbitmq_stream.connection import Connection
from conformance.clients.reference.rabbitmq_stream.requests import Undo, refused
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.frames import Close, Request

if TYPE_CHECKING:
    from conformance.clients.reference.rabbitmq_stream.client import StreamClient
    from conformance.clients.reference.rabbitmq_stream.publisher import Publisher

GOODBYE_S = 1.0  #: what unsent bytes get after the end of a connection
NOTES_MAX = 100  #: per connection: a server may send any number of answers to nobody


class Link(asyncio.Protocol):
    """Belongs to a `StreamClient`.

    Attributes:
        core: The connection without IO.
        endpoint: What it was connected to.
        opened_at: When the handshake was done.
    """

    def __init__(self, client: StreamClient, endpoint: str) -> None:
        self.client = client
        self.endpoint = endpoint
        self.core = client.runtime.part(Connection)(client.runtime, client.settings, self)
        self.opened_at: float | None = None
        self.is_writable = True
        self._loop = asyncio.get_running_loop()
        self._wire: Wire | None = None
        self._opening: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._notes = 0

    @property
    def is_open(self) -> bool:
        """Whether requests may be sent."""
        return self.core.state == "open"

    @property
    def has_timer(self) -> bool:
        """Whether it waits for a moment in time."""
        return self._timer is not None

    @property
    def addresses(self) -> set[str]:
        """All names of the server at the other end."""
        return {self.endpoint, self.core.advertised} - {""}

    # life

    async def open(self, deadline: float) -> None:
        """Connect and shake hands. Raises `ClientError`; then nothing is left open."""
        try:
            async with asyncio.timeout_at(deadline):
                self._wire = await self.client.runtime.network.dial(self.endpoint, lambda: self)
                if self.core.state != "ended":
                    self.core.start(self.client.runtime.clock.now(), deadline)
                self.settle()
                await asyncio.shield(self._opening)
        except TimeoutError:
            self.drop(ClientError("timeout", f"{self.endpoint}: no connection in time"))
            raise ClientError("timeout", f"{self.endpoint}: no connection in time") from None
        except OSError as error:
            self.drop(ClientError("connection", str(error)))
            raise ClientError("connection", f"{self.endpoint}: {error}") from None
        except BaseException:
            self.drop(ClientError("closed", "the client was closed"))
            raise

    async def close(self, deadline: float) -> None:
        """Send Close, wait for the answer, end the connection. Raises `ClientError` (timeout)."""
        if not self.is_open:
            self.drop(ClientError("closed", "the client was closed"))
            return
        self.core.closing = True
        try:
            await self.request(Close, Code.OK, "OK", deadline=deadline)
        except ClientError as error:
            if error.kind == "timeout":
                raise
        finally:
            self.drop(ClientError("closed", "the client was closed"))

    def drop(self, error: ClientError) -> None:
        """End the connection; no Close is sent."""
        self.core.now = self.client.runtime.clock.now()
        self.core.end(error)
        self.settle()

    # requests

    async def request(
        self,
        kind: type[Request],
        *fields: Any,
        deadline: float,
        undo: Undo | None = None,
        at_once: Callable[[Any], None] = lambda _: None,
    ) -> Any:
        """Ask and wait for the answer, whatever its code; `at_once` gets it before the next frame is read.

        Raises:
            ClientError: There was none, or there could not be one.
        """
        if not self.is_open:
            raise ClientError("connection", "the connection is gone", definite=True)
        if self.core.closing and kind is not Close:
            raise ClientError("closed", "the client was closed", definite=True)
        answer: asyncio.Future[Any] = self._loop.create_future()

        def done(result: Any) -> None:
            if answer.done():
                return
            if not isinstance(result, ClientError):
                at_once(result)
            answer.set_result(result)

        correlation_id = self.core.requests.ask(kind, *fields, done=done, deadline=deadline, undo=undo)
        self.settle()
        try:
            result = await answer
        except asyncio.CancelledError:
            self.core.requests.abandon(correlation_id)
            raise
        if isinstance(result, ClientError):
            raise result
        return result

    async def ask(self, kind: type[Request], *fields: Any, deadline: float, **more: Any) -> Any:
        """`request`, but any answer other than OK raises `ClientError` (refused)."""
        answer = await self.request(kind, *fields, deadline=deadline, **more)
        if answer.code != Code.OK:
            raise refused(kind.__name__, answer.code)
        return answer

    def take_back(self, kind: type[Request], *fields: Any) -> None:
        """Undo what the server has granted, and what nobody wants any more; whatever it answers.

        Close undoes all of it, and nothing is asked after it.
        """
        if self.is_open and not self.core.closing:
            deadline = self.client.runtime.clock.deadline(None)
            self.core.requests.ask(kind, *fields, done=lambda _: None, deadline=deadline)
            self.settle()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._wire = transport

    def data_received(self, data: bytes) -> None:
        self.core.receive(data, self.client.runtime.clock.now())
        self.settle()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._wire = None
        problem = f"connection lost: {error}" if error else "connection ended by the server"
        self.core.lost(self.client.runtime.clock.now(), problem)
        self.settle()

    def pause_writing(self) -> None:
        self.is_writable = False

    def resume_writing(self) -> None:
        self.is_writable = True
        self.client.progress()

    # between core and asyncio

    def settle(self) -> None:
        """Write what is due, end what has ended, set the timer."""
        data = self.core.data_to_send(self.client.runtime.clock.now())
        if data and self._wire is not None:
            self._wire.write(data)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.core.state == "ended":
            self._hang_up()
        elif (deadline := self.core.next_deadline()) is not None:
            self._timer = self._loop.call_at(self.client.runtime.clock.loop_time(deadline), self._wake)

    def _wake(self) -> None:
        self._timer = None
        # the loop may call a timer up to its clock's resolution early
        self.core.handle_timer(self.client.runtime.clock.now() + 0.001)
        self.settle()

    def _hang_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
            self._loop.call_later(GOODBYE_S, wire.abort)
        if not self._opening.done():
            self._opening.cancel()

    # connection.Owner

    def flush(self) -> None:
        self.settle()

    def connection_opened(self) -> None:
        self.opened_at = self.client.runtime.clock.now()
        if not self._opening.done():
            self._opening.set_result(None)

    def connection_ended(self, error: ClientError) -> None:
        if not self._opening.done():
            self._opening.set_exception(error)
            self._opening.exception()  # it may be that nobody looks any more
        elif self in self.client.links.all:  # else nobody has it yet, or the client itself has let it go
            self.client.recovery.link_ended(self, error)

    def stream_moved(self, stream: str, code: int) -> None:
        self.client.recovery.stream_moved(self, stream, code)

    def publisher_lost(self, publisher: Publisher) -> None:
        self.client.recovery.publisher_lost(publisher)

    def trouble(self, where: str, error: ClientError) -> None:
        self.client.runtime.callbacks.trouble(where, error)

    def dropped(self, what: str) -> None:
        self._notes += 1
        if self._notes <= NOTES_MAX:
            more = ", and more will not be reported" if self._notes == NOTES_MAX else ""
            self.client.runtime.callbacks.note(f"{self.endpoint}: {what} was dropped{more}")
