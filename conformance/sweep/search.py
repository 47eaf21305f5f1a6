"""The smallest of a kind that still fails, by trying simpler ones as long as there are any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Search(Generic[T]):
    """One search.

    Args:
        fails: Runs one, and says whether it fails the same way.
        most: How many runs it may cost.
        candidates: Simpler ones, the greatest simplification first.
        key: Equal for those that run alike.

    Attributes:
        runs: How many it has cost so far.
    """

    def __init__(
        self,
        fails: Callable[[T], bool],
        most: int,
        candidates: Callable[[T], Iterable[T]],
        key: Callable[[T], str],
    ) -> None:
        self._fails = fails
        self._most = most
        self._candidates = candidates
        self._key = key
        self._known: dict[str, bool] = {}
        self.runs = 0

    def smallest(self, one: T) -> T:
        """The smallest that was found; `one` itself fails."""
        best, taken = one, {self._key(one)}
        progress = True
        while progress and self.runs < self._most:
            progress = False
            for candidate in self._candidates(best):
                key = self._key(candidate)
                if key not in taken and self._try(candidate):
                    taken.add(key)
                    best, progress = candidate, True
                    break
        return best

    def _try(self, one: T) -> bool:
        key = self._key(one)
        if key not in self._known:
            if self.runs >= self._most:
                return False
            self.runs += 1
            self._known[key] = self._fails(one)
        return self._known[key]
