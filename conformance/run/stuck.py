"""Runs in this process that do not end: a client in an endless loop, or one that ends its process, ours."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from fakebrokers.core import virtual

PATIENCE = 5  #: times as long on the clock as on the processor, which may have others to serve
MOST_TIMES = 4  #: as much of the processor for a run that goes on


class Stuck(KeyboardInterrupt):
    """A run took too much time, or its client is gone. A KeyboardInterrupt, because asyncio keeps all others
    to itself."""


@contextmanager
def alarm_after(
    seconds: float, waits_s: float = 0.0, reached: Callable[[], float] | None = None
) -> Iterator[list[str]]:
    """Raises `Stuck` in what takes more of the processor, or `PATIENCE` times as long, or ends the process.

    Again and again, as there are clients that catch everything. Yields what it has said. Main thread only.

    Args:
        seconds: Of processor time.
        waits_s: How long the work may wait besides, in real time.
        reached: How far the work is, on its own clock. While that goes on, it may take `MOST_TIMES` as much
            of the processor, and wait for that as long as it takes.
    """
    said: list[str] = []
    longest_s = PATIENCE * seconds + waits_s
    rings = 0
    begun = 0.0 if reached is None else reached()
    last: dict[int, float] = {signal.SIGPROF: begun, signal.SIGALRM: begun}  # when each rang

    def ring(number: int, _: FrameType | None) -> None:
        nonlocal rings
        rings += number == signal.SIGPROF
        if reached is not None and rings < MOST_TIMES:
            before, last[number] = last[number], reached()
            if last[number] != before:
                return
        of_what = f"{seconds * rings:g} s of processor time"
        give_up(f"not done after {of_what if number == signal.SIGPROF else f'{longest_s:g} s'}")

    def leave(status: int) -> NoReturn:
        give_up(f"the client has ended its process with status {status}")

    def give_up(why: str) -> NoReturn:
        said.append(why)
        raise Stuck(why)

    former = {number: signal.signal(number, ring) for number in last}
    leaves, os._exit = os._exit, leave
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds)
    signal.setitimer(signal.ITIMER_REAL, longest_s, longest_s)
    try:
        yield said
    finally:
        os._exit = leaves
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in former.items():
            signal.signal(number, handler)


def run_or_stuck(
    work: Coroutine[Any, Any, None],
    seconds: float,
    waits_s: float = 0.0,
    run: Callable[[Coroutine[Any, Any, None]], None] = virtual.run,
    reached: Callable[[], float] | None = None,
) -> None:
    """Run work, on virtual time unless `run` says otherwise. Raises `Stuck`; see `alarm_after`."""
    with alarm_after(seconds, waits_s, reached) as said:
        try:
            run(work)
        except BaseException:  # cut off amid a step, a loop may end with any error, or as if all were well
            if not said:
                raise
    if said:
        raise Stuck(said[0])
