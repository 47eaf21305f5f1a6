"""How long the pauses of a base last: as written on a virtual clock, until nothing happens on a real one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from conformance.run.trace import Trace

SLACK_S = 0.25  #: what may pass over sockets and pipes until the other side has what was written
PAUSE_S = 4.0  #: the first back-off of most clients is shorter
LONG_S = 8.0  #: where a base waits until every back-off is over
LONG_FROM_S = 60.0
QUIET_S = 1.0  #: without a row in the trace, in a run that nothing has disturbed
TOUCHED_QUIET_S = 2.0  #: and in one that something has
LOOK_EVERY_S = 0.1


class Pace:
    """Pauses as they are written, up to a limit.

    Attributes:
        longest_s: What a pause takes at most; patience is measured by it.
    """

    def __init__(self, longest_s: float = math.inf) -> None:
        self.longest_s = longest_s

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(min(seconds, self.longest_s))


class RealPace(Pace):
    """Long pauses end as soon as the client rests: nothing is said, no op is open, it is connected as before.
    Short ones, in which a base lets something happen, last as long as they are written.

    A client that has not replaced every connection that it has lost may be about to; it gets the whole pause.

    Args:
        trace: What happens.
        touched: The connections at which faults have acted; grows.
        counts: Whether connections say anything; not so where each request makes its own, or where they are
            below the client.
        is_alive: Whether there is still anybody to wait for.
        pause_s: What a pause takes at most.
    """

    def __init__(
        self,
        trace: Trace,
        touched: Sequence[str],
        counts: bool = True,
        is_alive: Callable[[], bool] = lambda: True,
        pause_s: float = PAUSE_S,
    ) -> None:
        super().__init__(pause_s)
        self._is_alive = is_alive
        self._trace = trace
        self._touched = touched
        self._counts = counts
        self._next = 0  #: of the trace's rows
        self._standing: set[str] = set()
        self._missing = 0  #: connections that the broker has ended, and no other one has come since
        self._open = 0
        self._has_lost = False
        self._stood_at_close: bool | None = None

    async def sleep(self, seconds: float) -> None:
        """Let time pass: at most so long."""
        limit_s = max(self.longest_s, LONG_S) if seconds >= LONG_FROM_S else self.longest_s
        left_s = min(seconds, limit_s)
        if seconds <= self.longest_s:
            await asyncio.sleep(seconds if self._is_alive() else 0)
            return
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        while left_s > 0 and self._is_alive():
            await asyncio.sleep(min(left_s, LOOK_EVERY_S))
            left_s -= LOOK_EVERY_S
            if self._rests(begun_s, loop.time()):
                return

    def _rests(self, begun_s: float, now_s: float) -> bool:
        self._read()
        quiet_s = TOUCHED_QUIET_S if self._touched or self._has_lost else QUIET_S
        last_s = max(begun_s, self._trace.rows[-1].t if self._trace.rows else begun_s)
        return now_s - last_s >= quiet_s and self._open <= 0 and self._is_connected()

    def _is_connected(self) -> bool:
        if self._stood_at_close is not None:
            return self._stood_at_close
        return not self._counts or (bool(self._standing) and not self._missing)

    def _read(self) -> None:
        """Take what is new in the trace."""
        rows = self._trace.rows
        for row in rows[self._next : len(rows)]:
            self._next += 1
            if row.what == "accept":
                self._standing.add(row.connection)
                self._missing = max(0, self._missing - 1)
            elif row.what == "end":
                if row.connection in self._standing and row.data[0] == "broker":
                    self._missing += 1
                    self._has_lost = True
                self._standing.discard(row.connection)
            elif row.what in ("op", "answer"):
                self._open += 1 if row.what == "op" else -1
            elif row.what == "mark" and row.data == "close":
                self._stood_at_close = self._is_connected()
