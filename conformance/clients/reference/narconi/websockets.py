"""The WebSockets of a client: opening them, and making lost ones anew."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from conformance.clients.reference.kit import DEFAULT_TIMEOUT_S, ClientError, Runtime
from conformance.clients.reference.narconi.connection import reach
from conformance.clients.reference.narconi.settings import Addresses, Settings
from conformance.clients.reference.narconi.socket import Socket

T = TypeVar("T")

STEADY_S = 1.0  #: a WebSocket that is lost later was no failure


class WebSockets:
    """Makes the WebSockets of a client, and knows all that stand."""

    def __init__(self, runtime: Runtime, settings: Settings, addresses: Addresses) -> None:
        self.runtime = runtime
        self.settings = settings
        self._addresses = addresses
        self._sockets: list[Socket] = []
        self._backoff = runtime.backoff(settings.first_delay_s, settings.longest_delay_s)
        self._remade_at = -math.inf

    def socket(
        self,
        queue: str,
        protocol: str,
        query: Mapping[str, str],
        on_message: Callable[[Any], None],
        on_lost: Callable[[ClientError | None], None],
    ) -> Socket:
        """A WebSocket that is not connected yet."""
        made = self.runtime.part(Socket)(
            self.runtime,
            self.target(queue, query),
            self.settings.endpoint,
            protocol,
            on_message,
            on_lost,
            keepalive_s=self.settings.keepalive_s,
        )
        self._sockets = [one for one in self._sockets if not one.ended.is_set()]
        self._sockets.append(made)
        return made

    def target(self, queue: str, query: Mapping[str, str]) -> str:
        """Path and query of an upgrade."""
        text = "&".join(f"{name}={quote(value, safe='')}" if value else name for name, value in query.items())
        return self._addresses.websocket(queue) + (f"?{text}" if text else "")

    async def open(self, socket: Socket) -> None:
        """Connect and upgrade; whatever goes wrong lets go of the connection."""
        try:
            await reach(self.runtime, self.settings.endpoint, socket)
            await socket.opened
        except BaseException:
            socket.abort()
            socket.ended.set()
            raise

    def abort(self) -> None:
        """Let go of all of them."""
        for socket in self._sockets:
            socket.abort()

    # losses

    def recover(self, again: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T] | None:
        """One was lost; `again` makes another. Returns the task that does so, if one does."""
        if self.runtime.is_closed or not self.settings.auto_reconnect:
            return None
        return self.runtime.tasks.spawn(self.reconnect(again))

    async def reconnect(self, again: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Try until it works or the server will never let it. Raises `ClientError`."""
        self.runtime.callbacks.report("reconnecting")
        if not self.is_short_lived():
            self.begin_anew()
        tasks = self.runtime.tasks
        try:
            made = await self._backoff.retry(lambda: tasks.within(DEFAULT_TIMEOUT_S, again()), self.is_final)
        except ClientError as error:
            self.runtime.callbacks.report("target_closed", error.text, error.code)
            raise
        self._remade_at = self.runtime.clock.now()
        self.runtime.callbacks.report("reconnected")
        return made

    def begin_anew(self) -> None:
        """The next pause is the shortest again."""
        self._backoff.reset()

    def is_short_lived(self) -> bool:
        """Whether what is lost now was made anew a moment ago, so that the pauses go on growing."""
        return self.runtime.clock.now() - self._remade_at < STEADY_S

    def is_final(self, error: ClientError) -> bool:
        """Whether another attempt cannot succeed: a refusal that is no outage.

        See docs/protocols/narconi.md, "Handshake".
        """
        return error.definite and error.code is not None and error.code < 500
