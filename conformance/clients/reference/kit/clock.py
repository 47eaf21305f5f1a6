"""The time as a reference client sees it."""

from __future__ import annotations

import asyncio

from conformance.clients.reference.kit.network import Network

DEFAULT_TIMEOUT_S = 10.0  #: of an op that was given no time


class Clock:
    """Deadlines go by monotonic time, so that a wall clock that jumps moves none of them.

    Attributes:
        wrong_by_s: By how much the wall clock is wrong (op ``set_clock``).
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self.wrong_by_s = 0.0

    def now(self) -> float:
        """Monotonic seconds."""
        return asyncio.get_running_loop().time()

    def loop_time(self, moment: float) -> float:
        """A moment of `now` on the clock of the loop."""
        return moment

    def wall(self) -> float:
        """Seconds since 1970."""
        return self._network.wall() + self.wrong_by_s

    def deadline(self, timeout: float | None) -> float:
        """When an op with this time-out is over."""
        return self.now() + (DEFAULT_TIMEOUT_S if timeout is None else timeout)
