"""What carries the reference client: its tasks, deadlines, callbacks and reconnects."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

import msgspec

from conformance.mutants.narconi.errors import ClientError

T = TypeVar("T")
OnSession = Callable[[str, str, int | None], None]
OnError = Callable[[str, ClientError], None]

log = logging.getLogger(__name__)

OPEN_TIMEOUT_S = 10.0  #: of an upgrade that several publishes wait for


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may set.

    Attributes:
        endpoint: ``host:port``.
        project: First part of all addresses.
        keepalive_s: Between pings on a WebSocket; None: no pings.
        auto_reconnect: Make WebSockets that were lost anew.
        first_delay_s, longest_delay_s: Pause before a reconnect, give or take a half.
    """

    endpoint: str
    project: str
    keepalive_s: float | None = None
    auto_reconnect: bool = False
    first_delay_s: float = 0.5
    longest_delay_s: float = 5.0


class ClientBase:
    """See the module's text.

    Args:
        on_session: Told what happened to a connection, a text, and the code of the WebSocket's end.
        on_error: Told where an error that answers no call happened.
        on_note: Told what came and was dropped, one sentence.

    Attributes:
        wall_offset_s: How far the wall clock was moved; nothing here depends on it.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_session: OnSession,
        on_error: OnError,
        on_note: Callable[[str], None] = lambda _: None,
        seed: int = 0,
    ) -> None:
        self.settings = settings
        self.on_session = on_session
        self.on_error = on_error
        self.on_note = on_note
        self.is_closed = False
        self.wall_offset_s = 0.0
        self.random = Random(seed)
        self.tasks: set[asyncio.Task[Any]] = set()

    @staticmethod
    def tls_context(ca_file: str | None) -> ssl.SSLContext:
        """What a server has to prove."""
        return ssl.create_default_context(cafile=ca_file)

    # tasks

    def background(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that `abort` ends; its errors belong to whoever awaits it."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def join(self, task: asyncio.Task[T]) -> T:
        """The result of a background task that others may wait for too. Raises `ClientError`."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise ClientError("closed", "the session was closed", definite=True) from None
            raise

    async def within(self, timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
        """Do it within that many seconds altogether. Raises `ClientError` (timeout, closed)."""
        if self.is_closed:
            work.close()
            raise ClientError("closed", "the session is closed", definite=True)
        try:
            return await asyncio.wait_for(work, timeout)
        except TimeoutError:
            raise ClientError("timeout", f"not done after {timeout} s") from None

    # what the user is told

    def tell(self, what: str, text: str = "", code: int | None = None) -> None:
        """Tell the user what happened to a connection."""
        try:
            self.on_session(what, text, code)
        except Exception as error:
            self.callback_failed("session", error)

    def trouble(self, where: str, error: ClientError) -> None:
        """Tell the user of an error that no op reports."""
        try:
            self.on_error(where, error)
        except Exception as failure:  # the last resort: nobody is left to be told
            log.error("the error callback failed: %s", failure)

    def callback_failed(self, callback: str, error: Exception) -> None:
        """A callback of the user has raised; that goes no further."""
        self.trouble("callback", ClientError("internal", f"the {callback} callback failed: {error}"))

    # reconnects

    def recover(self, again: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T] | None:
        """A WebSocket was lost; `again` makes another one. Returns the task that does so, if one does."""
        if self.is_closed or not self.settings.auto_reconnect:
            return None
        return self.background(self.reconnect(again))

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Try with growing pauses, until it works or the server will never let it. Raises `ClientError`."""
        self.tell("reconnecting")
        failures = 0
        while True:
            await asyncio.sleep(self.delay(failures))
            failures += 1
            try:
                made = await self.within(OPEN_TIMEOUT_S, again())
            except ClientError as error:
                if self.is_final(error):
                    self.tell("target_closed", error.text, error.code)
                    raise
                continue
            self.tell("reconnected")
            return made

    def is_final(self, error: ClientError) -> bool:
        """Whether another attempt cannot succeed: a refusal that is no outage.

        See docs/protocols/narconi.md, "Handshake".
        """
        return error.definite and error.code is not None and error.code < 500

    def delay(self, failures: int) -> float:
        """Seconds before the next attempt: growing, and different for each client."""
        grown = min(self.settings.first_delay_s * 2**failures, self.settings.longest_delay_s)
        return float(grown * self.random.uniform(0.5, 1.5))
