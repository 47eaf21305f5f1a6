"""Where the writer ends one chunk and begins the next.

A real writer puts whatever it finds in its mailbox into one chunk, so boundaries follow timing and no
client may rely on them (docs/protocols/rabbitmq-stream.md, 7). Here they follow a rule that a test can
choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Protocol


class Chunking(Protocol):
    """A rule for chunk boundaries.

    Attributes:
        linger_s: How long a chunk that was left open waits for more, in seconds; None: until the step ends.
    """

    linger_s: float | None

    def cut(self, count: int) -> list[int]:
        """How many entries of a Publish with `count` go into each chunk; adds up to `count`."""

    def leave_open(self) -> bool:
        """Whether the last of them waits for the next Publish."""

    def step_ended(self) -> None:
        """A chunk waited until the end of a step, and is written now."""


class PerPublish:
    """One chunk per Publish."""

    linger_s: float | None = 0.0

    def cut(self, count: int) -> list[int]:
        return [count]

    def leave_open(self) -> bool:
        return False

    def step_ended(self) -> None:
        """Nothing ever waits."""


class Doubling(PerPublish):
    """One chunk per Publish of at most 32 entries, the default; a longer one as a busy writer cuts it.

    That is 32, 64, 128 ... entries up to 8192: how much a writer takes from its mailbox doubles while there
    is more in it.
    """

    first, longest = 32, 8192

    def cut(self, count: int) -> list[int]:
        sizes, size = [], self.first
        while count > size:
            sizes.append(size)
            count -= size
            size = min(2 * size, self.longest)
        return [*sizes, count]


class PerStep(Doubling):
    """What a step brings goes together, up to 8192 messages; only a long Publish is cut.

    How long that is adapts itself as in a real writer, which takes 32 messages at once from its mailbox,
    twice as many (up to 8192) whenever it got as many as it took, and half as many when it found none left.

    Args:
        is_exact: Asked when a chunk begins: whether each Publish is to have chunks of its own all the same,
            as with `Doubling`.
    """

    linger_s: float | None = None

    def __init__(self, is_exact: Callable[[], bool] = lambda: False) -> None:
        self._is_exact = is_exact
        self._size = self.first
        self._filled = 0  # entries of the chunk that is open

    def cut(self, count: int) -> list[int]:
        if not self._filled and self._is_exact():
            return super().cut(count)
        sizes = []
        if count > self._size:
            room = self._size - self._filled
            while count >= room:
                sizes.append(room)
                count -= room
                self._size = room = min(2 * self._size, self.longest)
            self._filled = 0
            if not count:
                return sizes
        self._filled += count
        while self._filled >= self._size < self.longest:
            self._size *= 2
        if self._filled >= self.longest:
            self._filled = 0
        return [*sizes, count]

    def leave_open(self) -> bool:
        """Until it is as long as it may be."""
        return self._filled > 0

    def step_ended(self) -> None:
        self._size = max(self._size // 2, self.first)
        self._filled = 0


class PerMessage(PerPublish):
    """One chunk per entry."""

    def cut(self, count: int) -> list[int]:
        return [1] * count


class Seeded:
    """Splits and merges at random, the same way for the same seed and the same order of Publishes."""

    def __init__(self, seed: int, longest: int = 8, linger_s: float = 0.01) -> None:
        self.linger_s: float | None = linger_s
        self._longest = longest
        self._random = Random(seed)

    def cut(self, count: int) -> list[int]:
        """Pieces of 1 to `longest` entries."""
        sizes = []
        while count:
            size = min(count, self._random.randint(1, self._longest))
            sizes.append(size)
            count -= size
        return sizes

    def leave_open(self) -> bool:
        """Every other time."""
        return self._random.random() < 0.5

    def step_ended(self) -> None:
        """Its chunks wait for a time, not for the end of a step."""


#: What ``chunking=`` may be.
RULES: Mapping[str, Callable[[], Chunking]] = {
    "publish": Doubling,
    "step": PerStep,
    "whole": PerPublish,
    "message": PerMessage,
}
