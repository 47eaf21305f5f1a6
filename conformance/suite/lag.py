"""How well the machine serves the harness: then it must not blame the client for being late."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType

PROBE_S = 0.05
_STAT = Path("/proc/stat")
_STEAL = 7  # user nice system idle iowait irq softirq steal


class LagMeter:
    """Measures how late the loop wakes up, and what the machine's host takes, while the block runs.

    Attributes:
        worst_s: The longest that the loop stood still.
        steal: Share of the CPU time of all processors that a hypervisor took away, 0 to 1, at the end of
            the block; None where the system does not tell.
    """

    def __init__(self) -> None:
        self.worst_s = 0.0
        self.steal: float | None = None
        self._before: tuple[int, ...] = ()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LagMeter:
        self._before = _jiffies()
        self._task = asyncio.create_task(self._probe())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.steal = _share(self._before, _jiffies())
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _probe(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + PROBE_S
            await asyncio.sleep(PROBE_S)
            self.worst_s = max(self.worst_s, loop.time() - due)


def _jiffies() -> tuple[int, ...]:
    """CPU time of all processors so far, by use; empty where the system does not tell."""
    try:
        first = _STAT.read_text(encoding="ascii").partition("\n")[0]
        return tuple([int(word) for word in first.split()[1 : _STEAL + 2]])
    except (OSError, ValueError):
        return ()


def _share(before: tuple[int, ...], after: tuple[int, ...]) -> float | None:
    if len(before) <= _STEAL or len(after) <= _STEAL:
        return None
    spent = sum(after) - sum(before)
    return (after[_STEAL] - before[_STEAL]) / spent if spent > 0 else 0.0
