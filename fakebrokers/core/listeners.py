"""Whether new connections are let in, and if not, why and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from fakebrokers.core.tcp import TcpListener


class _Owner(Protocol):
    @property
    def listeners(self) -> Sequence[TcpListener]: ...

    def opened(self) -> None:
        """The listeners serve again."""

    def failed(self, error: BaseException) -> None:
        """They could not be opened."""


class Gate:
    """The listeners of one fake, as faults and tests see them.

    Several reasons may keep them shut at the same time; they open when the last one is gone.
    """

    def __init__(self, owner: _Owner) -> None:
        self._owner = owner
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reasons: dict[str, asyncio.TimerHandle | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.hole = False

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """The fake runs on this loop."""
        self._loop = loop

    @property
    def shut(self) -> bool:
        """Whether nobody is let in."""
        return bool(self._reasons)

    def refuse(self, reason: str, for_s: float | None) -> None:
        """Refuse new connections for so many seconds; None until `open`."""
        self.hole = False
        for listener in self._owner.listeners:
            listener.close()
            if isinstance(listener, TcpListener):
                listener.reserve()
        self._note(reason, for_s)

    def black_hole(self, reason: str, for_s: float | None) -> None:
        """Let new connects hang for so many seconds; None until `open`."""
        self.hole = True
        for listener in self._owner.listeners:
            listener.black_hole()
        self._note(reason, for_s)

    def _note(self, reason: str, for_s: float | None) -> None:
        self._drop(reason)
        timer = None
        if for_s is not None and self._loop is not None:
            timer = self._loop.call_later(for_s, self.open, reason)
        self._reasons[reason] = timer

    def _drop(self, reason: str) -> bool:
        known = reason in self._reasons
        timer = self._reasons.pop(reason, None)
        if timer is not None:
            timer.cancel()
        return known

    def open(self, reason: str) -> None:
        """This reason is over. On the loop."""
        if self._drop(reason) and not self._reasons and self._loop is not None:
            task = self._loop.create_task(self.serve())
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._owner.failed(error)

    async def serve(self) -> None:
        """Let everybody in, whatever the reasons were."""
        for reason in tuple(self._reasons):
            self._drop(reason)
        self.hole = False
        for listener in self._owner.listeners:
            await listener.serve()
        self._owner.opened()

    def close(self) -> None:
        """The fake stops."""
        for reason in tuple(self._reasons):
            self._drop(reason)
        for task in self._tasks:
            task.cancel()
