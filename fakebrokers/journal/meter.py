"""How well the machine serves the harness: lag of the event loop, and CPU time that others took."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fakebrokers.journal.run import RunJournal

_STAT = Path("/proc/stat")
_STEAL = 7  # user nice system idle iowait irq softirq steal


class Meter:
    """Writes ``loop_lag_ms`` and ``cpu_steal`` (a share, 0 to 1; Linux only) every `every_s` seconds.

    Start and stop it on the loop that it watches, which must be the thread that writes the run's ops.
    """

    def __init__(self, journal: RunJournal, *, every_s: float = 0.25) -> None:
        self._journal = journal
        self._every_s = every_s
        self._due = 0.0
        self._before = _cpu()
        self._timer: asyncio.TimerHandle | None = None
        self.worst_lag_ms = 0.0

    def start(self) -> None:
        """Measure from now on."""
        self._arm(asyncio.get_running_loop())

    def stop(self) -> None:
        """Measure no more. Safe to call twice."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + self._every_s
        self._timer = loop.call_at(self._due, self._measure, loop)

    def _measure(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        lag_ms = max(0.0, (now - self._due) * 1000)
        self.worst_lag_ms = max(self.worst_lag_ms, lag_ms)
        self._journal.metric(now, "loop_lag_ms", lag_ms)
        cpu = _cpu()
        spent = sum(cpu) - sum(self._before)
        if spent > 0:
            self._journal.metric(now, "cpu_steal", (cpu[_STEAL] - self._before[_STEAL]) / spent)
        self._before = cpu
        self._arm(loop)


def _cpu() -> tuple[int, ...]:
    """Jiffies of all processors by use; empty where the system does not tell."""
    try:
        first = _STAT.read_text().partition("\n")[0]
    except OSError:
        return ()
    return tuple([int(word) for word in first.split()[1 : _STEAL + 2]])
