"""Where the writer ends one chunk and begins the next.

A real writer puts whatever it finds in its mailbox into one chunk, so boundaries follow timing and no
client may rely on them (docs/protocols/rabbitmq-stream.md, 7). Here they follow a rule that a test can
choose.
"""

from __future__ import annotations

from random import Random
from typing import Protocol


class Chunking(Protocol):
    """A rule for chunk boundaries.

    Attributes:
        linger_s: How long a chunk that was left open waits for more, in seconds.
    """

    linger_s: float

    def cut(self, count: int) -> list[int]:
        """How many entries of a Publish with `count` go into each chunk; adds up to `count`."""

    def leave_open(self) -> bool:
        """Whether the last of them waits for the next Publish."""


class PerPublish:
    """One chunk per Publish."""

    linger_s = 0.0

    def cut(self, count: int) -> list[int]:
        return [count]

    def leave_open(self) -> bool:
        return False


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


class PerMessage(PerPublish):
    """One chunk per entry."""

    def cut(self, count: int) -> list[int]:
        return [1] * count


class Seeded:
    """Splits and merges at random, the same way for the same seed and the same order of Publishes."""

    def __init__(self, seed: int, longest: int = 8, linger_s: float = 0.01) -> None:
        self.linger_s = linger_s
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
