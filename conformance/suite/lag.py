"""Whether the machine had time for a run: how late the runner's loop woke up, how long client and harness
waited for a processor, and what a hypervisor took.

A verdict that rests on time is worth nothing where the client was ready and the machine let it wait. Linux
counts that for every thread (``/proc/PID/schedstat``, in nanoseconds); elsewhere only the loop's own lag is
known.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from conformance.adapter.base import Adapter
from fakebrokers.core.loop import loop_thread

PROBE_S = 0.05
LOOK_EVERY_S = 1.0  #: at the threads of the client: some end before the run does
#: Of the time of a run, what its threads may wait for a processor: half of what an op may take beyond its
#: deadline (`deadline.patience_ms`).
STARVED_SHARE = 0.1
STARVED_S = 0.05  #: and that much in any case
_STAT = Path("/proc/stat")
_STEAL = 7  # user nice system idle iowait irq softirq steal


class LagMeter:
    """Measures how late the loop wakes up, and what else the machine keeps a run waiting for.

    Args:
        adapter: The client; in this process, or None, only the loop is measured.

    Attributes:
        worst_s: The longest that the loop stood still.
        waited_s: How long the threads of the client and those of the harness have waited for a processor, in
            all; 0 where the system does not tell.
        steal: Share of the CPU time of all processors that a hypervisor took away, 0 to 1, at the end of
            the block; None where the system does not tell.
    """

    def __init__(self, adapter: Adapter | None = None) -> None:
        self.worst_s = 0.0
        self.waited_s = 0.0
        self._seconds = 0.0
        self.steal: float | None = None
        self._adapter = adapter
        self._before: tuple[int, ...] = ()
        self._first: Mapping[int, int] = {}
        self._waits: Mapping[int, int] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LagMeter:
        self._before = _jiffies()
        self._first = self._waits = self._look()
        self._seconds = -asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._probe())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds += asyncio.get_running_loop().time()
        self.steal = _share(self._before, _jiffies())
        self._waits = {**self._waits, **self._look()}
        self.waited_s = sum(ns - self._first.get(thread, 0) for thread, ns in self._waits.items()) / 1e9
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @property
    def is_starved(self) -> bool:
        """Whether the machine kept the run waiting for so long that what is late may be late by that."""
        return self.waited_s > max(STARVED_S, STARVED_SHARE * self._seconds)

    def _look(self) -> Mapping[int, int]:
        """Of each thread that the run needs, how long it has waited for a processor so far (nanoseconds)."""
        facts = None if self._adapter is None else self._adapter.facts()
        if facts is None:
            return {}
        ours = (threading.get_native_id(), loop_thread().thread.native_id)
        return {**waits_of(facts.pid), **{thread: _wait_of(os.getpid(), thread) for thread in ours if thread}}

    async def _probe(self) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        while True:
            due = loop.time() + PROBE_S
            await asyncio.sleep(PROBE_S)
            self.worst_s = max(self.worst_s, loop.time() - due)
            if due - looked > LOOK_EVERY_S:
                looked = due
                self._waits = {**self._waits, **self._look()}


def waits_of(pid: int) -> dict[int, int]:
    """Of each thread of a process and of its children, how long it has waited for a processor so far.

    In nanoseconds, by the thread's id. Empty where the system does not tell, or there is no such process.
    """
    found: dict[int, int] = {}
    processes = [pid]
    while processes:
        process = processes.pop()
        with suppress(OSError):  # a thread that ends meanwhile takes its figure along
            for thread in map(int, os.listdir(f"/proc/{process}/task")):
                found[thread] = _wait_of(process, thread)
        processes += map(int, _read(f"/proc/{process}/task/{process}/children").split())
    return found


def _wait_of(process: int, thread: int) -> int:
    words = _read(f"/proc/{process}/task/{thread}/schedstat").split()  # running, waiting, how often
    return int(words[1]) if len(words) > 1 else 0


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


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
