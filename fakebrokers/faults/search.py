"""The smallest of a kind that still fails, by trying simpler ones as long as there are any."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
#: Simpler ones, the greatest simplification first.
Candidates = Callable[[T], Iterable[T]]
#: Equal for those that run alike.
Key = Callable[[T], str]


def tries(one: T, candidates: Candidates[T], key: Key[T], most: int) -> Generator[T, bool, T]:
    """Yields what is to be tried, is sent whether it fails the same way, returns the smallest that does.

    Args:
        one: It fails.
        most: How many are tried.
    """
    best, known, progress = one, {key(one)}, True
    while progress:
        progress = False
        for candidate in candidates(best):
            name = key(candidate)
            if name in known:
                continue  # it did not fail, or it is the best one
            if len(known) > most:
                return best
            known.add(name)
            if (yield candidate):
                best, progress = candidate, True
                break
    return best


class Search(Generic[T]):
    """One search.

    Args:
        fails: Runs one, and says whether it fails the same way.
        most: How many runs it may cost.

    Attributes:
        runs: How many it has cost so far.
    """

    def __init__(self, fails: Callable[[T], bool], most: int, candidates: Candidates[T], key: Key[T]) -> None:
        self._fails = fails
        self._most = most
        self._candidates = candidates
        self._key = key
        self.runs = 0

    def smallest(self, one: T) -> T:
        """The smallest that was found; `one` itself fails."""
        steps = tries(one, self._candidates, self._key, self._most)
        try:
            candidate = next(steps)
            while True:
                self.runs += 1
                candidate = steps.send(self._fails(candidate))
        except StopIteration as end:
            found: T = end.value
            return found


async def smallest_in_time(
    steps: Generator[T, bool, T], one: T, fails: Callable[[T], Awaitable[bool]], until_s: float
) -> T:
    """The same where runs take real time.

    Args:
        steps: Those of `tries` for `one`.
        until_s: When the search ends, on the loop's clock.
    """
    loop, best = asyncio.get_running_loop(), one
    try:
        candidate = next(steps)
        while loop.time() < until_s:
            good = await asyncio.wait_for(fails(candidate), until_s - loop.time())
            best = candidate if good else best
            candidate = steps.send(good)
    except (StopIteration, TimeoutError):
        pass
    return best
