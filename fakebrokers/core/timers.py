"""All timers of one fake, in one heap: what a step costs does not depend on how many there are.

    timer = timers.new(self._expire)      # once
    timer.set(now + 5.0)                  # as often as the deadline moves; replaces the one before
    timer.cancel()

A deadline that every frame puts off costs an assignment:
the old entry stays in the heap, and when it comes up the timer is put in again at its present deadline.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

#: Entries of cancelled timers that may stay in the heap before it is built anew.
STALE_LIMIT = 1000


class Timer:
    """One thing to be done at a time that can be moved.

    Attributes:
        due: When, in monotonic seconds; inf for never.
        act: What; gets the time at which it is called.
        owner: Whose error it is if `act` fails; None for the fake as a whole.
    """

    __slots__ = ("_queued", "_timers", "act", "due", "owner")

    def __init__(self, timers: Timers, act: Callable[[float], None], owner: Any) -> None:
        self.due = math.inf
        self.act: Callable[[float], None] | None = act
        self.owner = owner
        self._timers = timers
        self._queued = math.inf  #: time of its earliest entry in the heap

    def set(self, when: float | None) -> None:
        """Be called at `when` instead of whatever was set before; None or inf for never."""
        due = math.inf if when is None or self.act is None else when
        self.due = due
        if due < self._queued:
            self._queued = due
            self._timers.queue(due, self)

    @property
    def is_set(self) -> bool:
        """Whether it will be called."""
        return self.due < math.inf

    def cancel(self) -> None:
        """Do not be called."""
        self.due = math.inf

    def drop(self) -> None:
        """Never be called again, and hold on to nothing: its owner is gone."""
        self.due = math.inf
        if self.act is not None:
            self.act = self.owner = None
            if self._queued < math.inf:
                self._timers.one_stale()


class Timers:
    """The heap."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = 0
        self._stale = 0

    def __len__(self) -> int:
        return len(self._heap)

    def new(self, act: Callable[[float], None], owner: Any = None) -> Timer:
        """A timer that is not set yet."""
        return Timer(self, act, owner)

    def queue(self, due: float, timer: Timer) -> None:
        """Put a timer into the heap; of those with the same deadline the first comes first."""
        self._order += 1
        heapq.heappush(self._heap, (due, self._order, timer))

    def one_stale(self) -> None:
        """The entry of a dropped timer is left in the heap."""
        self._stale += 1
        if self._stale > STALE_LIMIT and self._stale > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].act is not None]
            heapq.heapify(self._heap)
            self._stale = 0

    @property
    def next_due(self) -> float:
        """When `pop` has to be asked next; inf if nothing is set."""
        while self._heap:
            at, _, timer = self._heap[0]
            if at == timer.due and at == timer._queued:
                return at
            heapq.heappop(self._heap)
            self._put_again(at, timer)
        return math.inf

    def _put_again(self, at: float, timer: Timer) -> None:
        """An entry came up that is not the timer's present deadline."""
        if timer.act is None:
            self._stale -= 1
        elif at == timer._queued:
            timer._queued = math.inf
            timer.set(timer.due)

    @property
    def mark(self) -> int:
        """What has been put in by now, for `pop`."""
        return self._order

    def pop(self, now: float, mark: int) -> Timer | None:
        """The next timer whose time has come, no longer set; None if there is none.

        Args:
            mark: Timers that were set after this mark wait for the next call: one that sets itself to `now`
                again and again must not keep the others from their turn.
        """
        while self._heap and self._heap[0][0] <= now and self._heap[0][1] <= mark:
            at, _, timer = heapq.heappop(self._heap)
            if timer.act is not None and at == timer._queued and timer.due <= now:
                timer._queued = timer.due = math.inf
                return timer
            self._put_again(at, timer)
        return None

    def run(self, now: float) -> None:
        """Call everything whose time has come. For cores without an engine, as in tests."""
        mark = self.mark
        while (timer := self.pop(now, mark)) is not None:
            if timer.act is not None:
                timer.act(now)
