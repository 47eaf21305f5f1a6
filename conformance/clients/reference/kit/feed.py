"""Serial delivery: one item after the other reaches a callback, however long that takes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableSet, Sequence
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")

#: the feed whose callback runs in this context
_feeding: ContextVar[Feed[Any] | None] = ContextVar("feeding", default=None)


class Feed(Generic[T]):
    """A queue and the task that empties it into `handle`.

    Errors of `handle` end the feed, and asyncio reports them: what a user's callback raises is contained by
    `Callbacks` before.
    """

    def __init__(self, feeds: MutableSet[Feed[Any]], handle: Callable[[T], Awaitable[None]]) -> None:
        self._items: deque[T] = deque()
        self._handle = handle
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._is_ended = False
        self._task = asyncio.get_running_loop().create_task(self._work())
        feeds.add(self)
        self._task.add_done_callback(lambda _: feeds.discard(self))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    async def _work(self) -> None:
        _feeding.set(self)
        while True:
            while self._items:
                await self._handle(self._items.popleft())
                await asyncio.sleep(0)
            self._drained.set()
            if self._is_ended:
                return
            self._filled.clear()
            await self._filled.wait()

    def put(self, item: T) -> None:
        """One more."""
        self._drained.clear()
        self._items.append(item)
        self._filled.set()

    def put_first(self, items: Sequence[T]) -> None:
        """Some in front of all that waits, in their order."""
        self._drained.clear()
        self._items.extendleft(reversed(items))
        self._filled.set()

    def clear(self) -> None:
        """Forget what waits; a callback that runs goes on."""
        self._items.clear()

    async def drained(self) -> None:
        """Wait until all has been handled."""
        while self._items or not self._drained.is_set():
            await self._drained.wait()

    def end(self) -> None:
        """No more comes: the task ends after what waits."""
        self._is_ended = True
        self._filled.set()

    def abort(self) -> None:
        """Let go of everything, of a callback that runs too; the task ends even where that goes on."""
        self.clear()
        self._is_ended = True
        self._task.cancel()

    async def ended(self, timeout: float | None = None) -> None:
        """Wait for the task, at most `timeout` seconds; not where the callback itself asks."""
        if _feeding.get() is not self and not self._task.done():
            await asyncio.wait({self._task}, timeout=timeout)
