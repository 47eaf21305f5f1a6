"""What the parts of `StreamClient` share: its connections, its background tasks, whom it tells what."""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from random import Random
from typing import Any, ClassVar

from conformance.mutants.rabbitmq_stream.connection import Connection
from conformance.mutants.rabbitmq_stream.errors import ClientError
from conformance.mutants.rabbitmq_stream.link import Link
from conformance.mutants.rabbitmq_stream.network import Connect, Wire, sockets
from conformance.mutants.rabbitmq_stream.publisher import Publisher
from conformance.mutants.rabbitmq_stream.settings import Settings
from conformance.mutants.rabbitmq_stream.subscription import Subscription

OnSession = Callable[[str, str, int | None, str | None], None]
OnError = Callable[[str, ClientError], None]
OnNote = Callable[[str], None]

log = logging.getLogger(__name__)


class Base:
    """The state of a client.

    Attributes:
        link_type, connection_type, publisher_type, subscription_type: The other parts of the client.
        endpoints: ``host:port`` of the servers to begin with.
        on_session: Called with what happened, a text, a code and a stream, the last two often None.
        on_error: Called with where it happened and the error.
        on_note: Called with what the server sent and the client has dropped, one sentence.
        control: The connection that requests go to, or None while there is none.
        links: All open connections.
        publishers: By stream and name.
        subscriptions: Those that are not closed, with the tasks that feed their callbacks.
        is_closed: By the user, or given up.
        wall_offset_s: How far the wall clock was moved; nothing here depends on it.
    """

    link_type: ClassVar[type[Link]] = Link
    connection_type: ClassVar[type[Connection]] = Connection
    publisher_type: ClassVar[type[Publisher]] = Publisher
    subscription_type: ClassVar[type[Subscription]] = Subscription

    def __init__(
        self,
        endpoints: Sequence[str],
        settings: Settings | None = None,
        connect: Connect | None = None,
        *,
        on_session: OnSession = lambda *_: None,
        on_error: OnError = lambda *_: None,
        on_note: OnNote = lambda _: None,
        seed: int = 0,
    ) -> None:
        self.endpoints = list(endpoints)
        self.settings = settings or Settings()
        self.on_session = on_session
        self.on_error = on_error
        self.on_note = on_note
        self.control: Link | None = None
        self.links: list[Link] = []
        self.publishers: dict[tuple[str, str | None], Publisher] = {}
        self.subscriptions: dict[Subscription, asyncio.Task[None]] = {}
        self.is_closed = False
        self.is_reconnecting = False
        self.wall_offset_s = 0.0
        self.random = Random(seed)
        self.tasks: set[asyncio.Task[Any]] = set()
        self._connect = connect or sockets()
        self._waiters: list[asyncio.Future[None]] = []

    # time

    def now(self) -> float:
        """Monotonic seconds."""
        return asyncio.get_running_loop().time()

    def loop_time(self, moment: float) -> float:
        """A moment of `now` on the clock of the loop."""
        return moment

    def deadline(self, timeout: float | None) -> float:
        """When an op with this time-out is over."""
        return self.now() + (self.settings.request_timeout_s if timeout is None else timeout)

    # tasks

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something in the background until `close`; its errors belong to whoever awaits it."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def join(self, task: asyncio.Task[Any], deadline: float) -> Any:
        """The result of a background task that others may wait for too."""
        try:
            async with asyncio.timeout_at(self.loop_time(deadline)):
                return await asyncio.shield(task)
        except TimeoutError:
            raise ClientError("timeout", "it took too long") from None
        except asyncio.CancelledError:
            if task.cancelled():
                raise ClientError("closed", "the client was closed", definite=False) from None
            raise

    async def until(self, condition: Callable[[], bool], deadline: float = math.inf) -> None:
        """Wait for something that `progress` announces. Raises `ClientError`."""
        while not condition():
            if self.is_closed:
                raise ClientError("closed", "the client is closed", definite=True)
            if self.control is None and not self.is_reconnecting:
                raise ClientError("connection", "not connected", definite=True)
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                async with asyncio.timeout_at(None if deadline == math.inf else self.loop_time(deadline)):
                    await waiter
            except TimeoutError:
                raise ClientError("timeout", "no connection in time") from None

    def progress(self) -> None:
        """Something has changed that somebody may wait for."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # what the user is told

    def tell(self, what: str, text: str = "", code: int | None = None, stream: str | None = None) -> None:
        """Tell the user what happened to the session."""
        self.contain("session", lambda: self.on_session(what, text, code, stream))

    def trouble(self, where: str, error: ClientError) -> None:
        """Tell the user of an error that no op reports."""
        try:
            self.on_error(where, error)
        except Exception as failure:  # the last resort: nobody is left to be told
            log.error("the error callback failed: %s", failure)

    def note(self, text: str) -> None:
        """Tell the user what was dropped, so that nothing is lost in silence."""
        try:
            self.on_note(text)
        except Exception as failure:
            log.error("the note callback failed: %s", failure)

    def contain(self, callback: str, act: Callable[[], None]) -> None:
        """Call the user's code; whatever it raises goes no further."""
        try:
            act()
        except Exception as error:
            self.callback_failed(callback, error)

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        """The same for a callback that takes its time."""
        try:
            await act()
        except Exception as error:
            self.callback_failed(callback, error)

    def callback_failed(self, callback: str, error: Exception) -> None:
        """A callback of the user has raised."""
        self.trouble("callback", ClientError("internal", f"the {callback} callback failed: {error}"))

    # connections

    @staticmethod
    def tls_context(ca_file: str | None) -> ssl.SSLContext:
        """How servers have to prove who they are."""
        return ssl.create_default_context(cafile=ca_file)

    async def dial(self, endpoint: str, make: Callable[[], asyncio.Protocol]) -> Wire:
        """A new connection's transport."""
        return await self._connect(endpoint, make)

    async def open_link(self, endpoint: str, deadline: float) -> Link:
        """A new connection, with its handshake done. Raises `ClientError`."""
        link = self.link_type(self, endpoint)  # type: ignore[arg-type] # the client is this with all its parts
        await link.open(deadline)
        if not link.is_open:  # its end came in one segment with the last answer of the handshake
            raise ClientError("connection", f"{endpoint}: lost right behind the handshake", definite=True)
        self.links.append(link)
        return link

    def delay(self, failures: int) -> float:
        """Seconds before the next attempt: growing, and different for each client."""
        grown = min(self.settings.first_delay_s * 2**failures, self.settings.longest_delay_s)
        return float(grown * self.random.uniform(0.5, 1.5))

    async def control_link(self, deadline: float) -> Link:
        """The connection for requests, as soon as there is one. Raises `ClientError`."""
        await self.until(lambda: self.control is not None, deadline)
        assert self.control is not None
        return self.control

    def link_ended(self, link: Link, error: ClientError) -> None:
        """A connection is gone."""
        raise NotImplementedError

    def stream_moved(self, link: Link, stream: str, code: int) -> None:
        """A connection does not serve a stream any more."""
        raise NotImplementedError

    def publisher_lost(self, publisher: Publisher) -> None:
        """The server does not know a publisher any more."""
        raise NotImplementedError
