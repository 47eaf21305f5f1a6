"""Whether the machine had time for a run: how late the runner's loop woke up, how long client and harness
waited for a processor, and what others took of it.

A verdict that rests on time is worth nothing where the client was ready and the machine ran something else.
Linux counts both for every thread (``/proc/PID/schedstat``); elsewhere only the loop's own lag is known.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from conformance.clients.adapter.base import Adapter
from fakebrokers.core.loop import loop_thread

PROBE_S = 0.05
LOOK_EVERY_S = 1.0  #: at the threads of the client: some end before the run does
#: Of the time of a run, what its threads may wait for a processor, and others may use one: half of what an op
#: may take beyond its deadline (`deadline.patience_ms`).
STARVED_SHARE = 0.1
STARVED_S = 0.05  #: and that much in any case
_STAT = Path("/proc/stat")
_IDLE, _STEAL = slice(3, 5), 7  # user nice system idle iowait irq softirq steal
_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


Times = tuple[int, int]  #: of a thread: running, and waiting for a processor, in nanoseconds


class Threads(NamedTuple):
    """The threads that a run needs, by their ids."""

    client: Mapping[int, Times]
    harness: Mapping[int, Times]

    def followed_by(self, later: Threads) -> Threads:
        """What is known after another look; threads that have ended stay as they were."""
        return Threads({**self.client, **later.client}, {**self.harness, **later.harness})

    def since(self, first: Threads) -> tuple[float, float]:
        """How long the client has run, and the longest waits of the client and of the harness, in seconds."""
        none = (0, 0)
        ran = sum(ran - first.client.get(thread, none)[0] for thread, (ran, _) in self.client.items())
        waited = 0
        for now, before in zip(self, first, strict=True):
            waits = (wait - before.get(thread, none)[1] for thread, (_, wait) in now.items())
            waited += max(waits, default=0)
        return ran / 1e9, waited / 1e9


class LagMeter:
    """Measures how late the loop wakes up, and what else the machine keeps a run waiting for.

    Args:
        adapter: The client; in this process, or None, only the loop is measured.

    Attributes:
        worst_s: The longest that the loop stood still.
        waited_s: How long that thread of the client, and that of the harness, waited for a processor which
            waited longest; 0 where the system does not say.
        others_s: CPU time of everything that is neither the client nor the harness.
        steal: Share of the CPU time of all processors that a hypervisor took away, 0 to 1, at the end of
            the block; None where the system does not say.
    """

    def __init__(self, adapter: Adapter | None = None) -> None:
        self.worst_s = 0.0
        self.waited_s = 0.0
        self.others_s = 0.0
        self._seconds = 0.0
        self.steal: float | None = None
        self._adapter = adapter
        self._before: tuple[int, ...] = ()
        self._used_s = 0.0
        self._first = self._last = Threads({}, {})
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LagMeter:
        self._before = _jiffies()
        self._used_s = -time.process_time()
        self._first = self._last = self._look()
        self._seconds = -asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._probe())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds += asyncio.get_running_loop().time()
        self._used_s += time.process_time()
        now = _jiffies()
        self.steal = _share(self._before, now)
        self._last = self._last.followed_by(self._look())
        ran_s, self.waited_s = self._last.since(self._first)
        self.others_s = _busy_s(self._before, now) - ran_s - self._used_s
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def is_starved(self) -> bool:
        """Whether the run had to wait for others so long that what is late may be late by that."""
        return min(self.waited_s, self.others_s) > max(STARVED_S, STARVED_SHARE * self._seconds)

    def _look(self) -> Threads:
        """What the threads that the run needs have run and waited so far."""
        facts = None if self._adapter is None else self._adapter.facts()
        if facts is None:
            return Threads({}, {})
        ours = (threading.get_native_id(), loop_thread().thread.native_id)
        return Threads(
            times_of(facts.pid), {thread: _times(os.getpid(), thread) for thread in ours if thread}
        )

    async def _probe(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            due = loop.time() + PROBE_S
            await asyncio.sleep(PROBE_S)
            self.worst_s = max(self.worst_s, loop.time() - due)
            if due - looked > LOOK_EVERY_S:
                looked = due
                self._last = self._last.followed_by(self._look())


def times_of(pid: int) -> dict[int, Times]:
    """Of each thread of a process and of its children, how long it has run and waited for a processor so far.

    By the thread's id. Empty where the system does not say, or there is no such process.
    """
    found: dict[int, Times] = {}
    processes = [pid]
    while processes:
        process = processes.pop()
        with suppress(OSError):  # a thread that ends meanwhile takes its figures along
            for thread in map(int, os.listdir(f"/proc/{process}/task")):
                found[thread] = _times(process, thread)
        processes += map(int, _read(f"/proc/{process}/task/{process}/children").split())
    return found


def _times(process: int, thread: int) -> Times:
    words = _read(f"/proc/{process}/task/{thread}/schedstat").split()  # running, waiting, how often
    return (int(words[0]), int(words[1])) if len(words) > 1 else (0, 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _jiffies() -> tuple[int, ...]:
    """CPU time of all processors so far, by use; empty where the system does not say."""
    try:
        first = _STAT.read_text(encoding="ascii").partition("\n")[0]
        return tuple([int(word) for word in first.split()[1 : _STEAL + 2]])
    except (OSError, ValueError):
        return ()


def _busy_s(before: tuple[int, ...], after: tuple[int, ...]) -> float:
    """CPU time that was used meanwhile, by any process; 0 where the system does not say."""
    spent = [later - sooner for sooner, later in zip(before, after, strict=False)]
    return (sum(spent) - sum(spent[_IDLE])) / _TICKS_PER_S


def _share(before: tuple[int, ...], after: tuple[int, ...]) -> float | None:
    if len(before) <= _STEAL or len(after) <= _STEAL:
        return None
    spent = sum(after) - sum(before)
    return (after[_STEAL] - before[_STEAL]) / spent if spent > 0 else 0.0
