"""A connection that is there as long as the session is: after a loss it is made anew."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from conformance.clients.reference.kit import ClientError, Runtime, WaitQueue
from conformance.clients.reference.redis.link import Link, Settings

FIRST_S, LONGEST_S = 0.1, 4.0  #: pauses before a connection is made again


class Line:
    """Opens a `Link` when it is needed first, and again after each loss where the session reconnects.

    Args:
        push: Takes what comes unasked.
        opened: Runs on each new link before anybody else may use it.
        listens: See `Link`.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        push: Callable[[Sequence[Any]], None],
        opened: Callable[[Link], Awaitable[None]],
        *,
        listens: bool = False,
    ) -> None:
        self.runtime = runtime
        self.settings = settings
        self.push = push
        self.opened = opened
        self.listens = listens
        self.backoff = runtime.backoff(FIRST_S, LONGEST_S)
        self.queue = WaitQueue()
        self.link: Link | None = None
        self.over: ClientError | None = None  #: why the session is over
        self._opened_at = 0.0
        self._opening: asyncio.Task[Link] | None = None

    @property
    def is_open(self) -> bool:
        """Whether commands go out at once."""
        return self.link is not None and self.link.is_open

    async def ready(self, deadline: float) -> Link:
        """The link, in the order of asking; waits for the next one while the session reconnects.

        Args:
            deadline: On the clock's `now`.

        Raises:
            ClientError: connection where there is none and none will come; timeout, closed; what opening it
                has ended with.
        """
        return await self.queue.after(self._ready(deadline))

    async def _ready(self, deadline: float) -> Link:
        if self.runtime.is_closed:
            raise ClientError("closed", "the client is closed", definite=True)
        if self.link is not None and self.link.is_open:
            return self.link
        if self._opening is None:
            if self.over is not None:
                raise ClientError(self.over.kind, self.over.text, code=self.over.code, definite=True)
            if self.link is not None:
                raise ClientError("connection", "the connection is lost", definite=True)
            self._begin(self.open())
        assert self._opening is not None
        return await self.runtime.tasks.join(self._opening, deadline, definite=True)

    def _begin(self, work: Any) -> None:
        task = self._opening = self.runtime.tasks.spawn(work)
        task.add_done_callback(self._is_opened)

    def _is_opened(self, task: asyncio.Task[Link]) -> None:
        if self._opening is task:
            self._opening = None

    async def open(self) -> Link:
        """A new link."""
        link = self.runtime.part(Link)(self.runtime, self.lost, self.push, listens=self.listens)
        await link.open(self.settings)
        try:
            await self.opened(link)
        except BaseException:
            link.abort(ClientError("closed", "it could not be set up"))
            raise
        if not link.is_open:
            raise ClientError("connection", "the connection is gone", definite=True)
        self.link = link
        self._opened_at = self.runtime.clock.now()
        return link

    def lost(self, link: Link, error: ClientError) -> None:
        """A link has ended: report it once, and make the next one if that is wanted."""
        if link is not self.link or self.runtime.is_closed:
            return
        self.runtime.callbacks.report("connection_lost", error.text, error.code)
        if self.runtime.clock.now() - self._opened_at > LONGEST_S:
            self.backoff.reset()
        if self.settings.auto_reconnect:
            self._begin(self.again())

    async def again(self) -> Link:
        """The next link, after as many attempts as it takes. Refused credentials end the session."""
        try:
            link = await self.backoff.retry(self.open, lambda error: error.kind == "auth")
        except ClientError as error:
            self.over = error
            self.runtime.callbacks.report("disconnected", error.text, error.code)
            raise
        self.runtime.callbacks.report("reconnected")
        return link

    def close(self, error: ClientError) -> None:
        """End it for good."""
        if self._opening is not None:
            self._opening.cancel()
        if self.link is not None:
            self.link.abort(error)
