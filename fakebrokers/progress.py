"""How far a command has come, for whoever waits: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import math
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

EVERY_S = 10.0  #: between two lines where there is no terminal


class Shown:
    """Runs that have ended, of how many, and when it will be over. Use it as a context manager.

    Args:
        console: For people; not where results are printed.
        word: What goes on.
        total: Runs; None: as many as there is time for.
        seconds: What it takes at most; None: until all runs have ended.
    """

    def __init__(self, console: Console, word: str, total: int | None, seconds: float | None) -> None:
        columns = (TextColumn(word), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._console = console
        self._total = total
        self._seconds = seconds
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(word, total=total or seconds)
        self._begun = self._told = time.monotonic()

    def __enter__(self) -> Shown:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, done: int, failed: int, total: int | None = None) -> None:
        """So many runs have ended; of the total, if that was not known before."""
        if total is not None and total != self._total:
            self._total = total
        now = time.monotonic()
        so_far_s = now - self._begun
        by_time = self._left_s(done, so_far_s) >= (self._seconds or math.inf) - so_far_s
        self._bar.update(
            self._task,
            total=self._seconds if by_time else self._total,
            completed=so_far_s if by_time else done,
        )
        if self._console.is_terminal or now - self._told < EVERY_S:
            return
        self._told = now
        left_s = min(self._left_s(done, so_far_s), (self._seconds or math.inf) - so_far_s)
        of = f" of {self._total}" if self._total else ""
        self._console.print(f"{done}{of} runs, {failed} failed, about {max(0.0, left_s):.0f} s to go")

    def _left_s(self, done: int, so_far_s: float) -> float:
        """Until all runs have ended, as it goes on."""
        return (self._total - done) * so_far_s / done if self._total and done else math.inf

    def say(self, text: str) -> None:
        """What comes after the runs."""
        self._bar.stop()
        self._console.print(text)
