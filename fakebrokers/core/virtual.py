"""An asyncio loop on virtual time: when nothing is ready, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """A selector that lets time pass instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def skip(self, seconds: float) -> None:
        """Time passes at once."""
        self.elapsed += seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            return []  # something is ready: whatever other threads want is heard before time passes
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock on virtual time: everything waits, and no timer is set")
        if timeout > 0:
            self.elapsed += timeout
        return []


class VirtualTime:
    """A loop whose time starts at 0 s and passes only when everything waits."""

    def stand_still(self, seconds: float) -> None:
        """Time passes in which nothing runs, as for a process that is stopped: timers in it come late."""
        raise NotImplementedError


class VirtualLoop(VirtualTime, asyncio.SelectorEventLoop):
    """Time starts at 0 s and passes only when every task waits. For work without real IO."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds."""
        return self._jumping.elapsed

    def stand_still(self, seconds: float) -> None:
        self._jumping.skip(seconds)


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
