"""Background tasks and deadlines of a reference client."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from conformance.clients.reference.kit.clock import Clock
from conformance.clients.reference.kit.errors import ClientError
from conformance.clients.reference.kit.ordered import OrderedSet

T = TypeVar("T")


class Tasks:
    """The tasks of one client.

    Args:
        is_closed: Whether the client is closed: then nothing new begins.
    """

    def __init__(self, clock: Clock, is_closed: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_closed = is_closed
        self._running: OrderedSet[asyncio.Task[Any]] = OrderedSet()

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something in the background until `end`; its errors belong to the task that awaits it."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()

    def end(self) -> None:
        """Cancel all of them."""
        for task in tuple(self._running):
            task.cancel()

    async def join(self, task: asyncio.Task[T], deadline: float = math.inf, *, definite: bool = False) -> T:
        """The result of a background task that others may wait for too.

        Args:
            deadline: On the clock's `now`.
            definite: Whether its cancellation surely had no effect.

        Raises:
            ClientError: ``timeout``; ``closed`` if the task was cancelled.
        """
        try:
            async with asyncio.timeout_at(None if deadline == math.inf else self._clock.loop_time(deadline)):
                return await asyncio.shield(task)
        except TimeoutError:
            raise ClientError("timeout", "it took too long") from None
        except asyncio.CancelledError:
            if task.cancelled():
                raise ClientError("closed", "the client was closed", definite=definite) from None
            raise

    async def within(self, timeout: float | None, work: Coroutine[Any, Any, T]) -> T:
        """Do it within that many seconds altogether. Raises `ClientError` (timeout, closed)."""
        if self._is_closed():
            work.close()
            raise ClientError("closed", "the client is closed", definite=True)
        try:
            return await asyncio.wait_for(work, timeout)
        except TimeoutError:
            raise ClientError("timeout", f"not done after {timeout} s") from None
