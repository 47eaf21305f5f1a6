"""In which order messages go out (docs/protocols/pzq.md, "Who gets what, and in which order").

The daemon walks a cursor over its store. Here only the messages that wait are kept, in two heaps: those
ahead of the cursor, and those that it has passed and that wait for the next walk.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import accumulate, cycle

#: (place in the store's order, key)
Waiting = tuple[bytes, bytes]

#: How many messages the pipe took in a row before one found it full and was skipped, as recorded with a
#: backlog of 60 and one new consumer.
RECORDED_RUNS = (
    *(5, 2, 1, 2, 4, 2, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 1),  # first walk
    *(2, 3, 1, 1, 2, 2, 2, 2),  # the walks after it
    *(1, 1, 1, 1),
    *(1, 3),
)


class Walk:
    """The cursor and what waits on both sides of it."""

    def __init__(self) -> None:
        self._ahead: list[Waiting] = []
        self._behind: list[Waiting] = []
        self._cursor = b""

    def __len__(self) -> int:
        return len(self._ahead) + len(self._behind)

    def add(self, place: bytes, key: bytes) -> None:
        """A message waits from now on."""
        heappush(self._ahead if place > self._cursor else self._behind, (place, key))

    def step(self) -> Waiting | None:
        """The next message, which waits no longer; None at the end, and then the cursor is at the start."""
        if not self._ahead:
            self.rewind()
            return None
        waiting = heappop(self._ahead)
        self._cursor = waiting[0]
        return waiting

    def rewind(self) -> None:
        """Put the cursor before the first message."""
        self._cursor = b""
        if not self._ahead:
            self._ahead, self._behind = self._behind, self._ahead
        elif self._behind:
            self._ahead += self._behind
            self._behind = []
            heapify(self._ahead)

    def clear(self) -> None:
        """Nothing waits."""
        self._ahead.clear()
        self._behind.clear()
        self._cursor = b""


class Rhythm:
    """When the pipe to the consumers is full for the length of one look (order ``skip``)."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """The pipe has had time to run empty."""
        self._full_at = accumulate(cycle(RECORDED_RUNS))
        self._next = next(self._full_at)
        self._taken = 0

    def full(self) -> bool:
        """Whether the pipe is full now; the next look finds room again."""
        if self._taken < self._next:
            self._taken += 1
            return False
        self._next = next(self._full_at)
        return True
