"""How many scenarios run at once: as many as the machine carries without being late itself.

Scenarios mostly wait, so an idle machine carries many more than it has cores. When the runner's own loop
wakes up late, fewer are begun from then on; those that run go on.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from types import TracebackType

from conformance.suite.lag import PROBE_S

PER_CORE = 8
MOST, LEAST = 32, 4
WINDOW_S = 0.5
#: Above this the machine has too much to do, below it could do more (seconds).
LATE_S, EARLY_S = 0.06, 0.02


def width_here() -> int:
    """With how many to begin on this machine, as it is now."""
    cores = os.cpu_count() or 1
    try:
        busy = os.getloadavg()[0] / cores
    except (AttributeError, OSError):  # Windows
        busy = 0.0
    wanted = min(MOST, PER_CORE * cores)
    return max(LEAST, wanted if busy < 1 else wanted // 2)


class Limiter:
    """Lets a number of them in at a time; `enter` and `leave` around each. Use it as a context manager.

    Args:
        width: How many at first.
        most: How many at most.
        follows_lag: Whether the number follows the measured lag; else it stays.
    """

    def __init__(self, width: int, most: int, *, follows_lag: bool) -> None:
        self.most = most
        self.width = min(width, most)
        self.inside = 0
        self._follows_lag = follows_lag
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Limiter:
        if self._follows_lag:
            self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def enter(self, rank: int = 0) -> None:
        """Wait until there is room; those of a lower rank come first, and of one rank who came first."""
        mine = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, next(self._numbers), mine))
        self._let_in()
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """There is room for one more."""
        self.inside -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self.inside < self.width:
            _, _, waiting = heappop(self._waiting)
            if not waiting.done():
                waiting.set_result(None)
                self.inside += 1

    def adapt(self, lag_s: float) -> None:
        """Fewer after a long lag, more after none, if that many were wanted."""
        if lag_s > LATE_S:
            self.width = max(min(LEAST, self.most), self.width * 3 // 4)
        elif lag_s < EARLY_S and self.inside >= self.width:
            self.width = min(self.most, self.width + 2)
            self._let_in()

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            worst, end = 0.0, loop.time() + WINDOW_S
            while loop.time() < end:
                due = loop.time() + PROBE_S
                await asyncio.sleep(PROBE_S)
                worst = max(worst, loop.time() - due)
            self.adapt(worst)
