"""The smallest plans that a client still fails.

A run in real time takes seconds and waits most of them. So whole sets of simpler plans are run at once,
each of them twice, and the greatest simplification that fails is taken. One that fails sometimes only is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from fakebrokers.faults.search import Search

AT_ONCE = 6  #: simpler plans of one search
TWICE = 2  #: runs that have to fail

P = TypeVar("P")  # a plan
R = TypeVar("R")  # a run of one, judged


class Simpler(NamedTuple, Generic[P]):
    """How plans of a kind become simpler.

    Attributes:
        candidates: Simpler plans, the greatest simplification first.
        key: Equal for equal plans.
        most: How many runs a search may cost where they take no real time.
    """

    candidates: Callable[[P], Iterator[P]]
    key: Callable[[P], str]
    most: int

    def search(self, fails: Callable[[P], bool]) -> Search[P]:
        """A search for the smallest plan that fails."""
        return Search(fails, self.most, self.candidates, self.key)


class Shrinkable(NamedTuple, Generic[P, R]):
    """What a search among plans has to know of them.

    Attributes:
        run: Runs a plan, and judges it.
        shows: Whether a run shows what is called so.
    """

    run: Callable[[P], Awaitable[R]]
    shows: Callable[[R, str], bool]
    simpler: Simpler[P]


class ShrinkResult(NamedTuple, Generic[R]):
    """A run of the smallest plan, and whether each run of it has failed."""

    run: R
    steady: bool


async def shrink_all(
    wishes: Sequence[tuple[P, str]], plans: Shrinkable[P, R], lanes: int, seconds: float
) -> list[ShrinkResult[R] | None]:
    """Shrink all of them side by side.

    Args:
        wishes: Plans, each with the name of what was found there.
        lanes: How many runs at once.
        seconds: After which no simpler plan is begun, and the best so far is taken.

    Returns:
        For each of them what it came to; None where not one run has failed again.
    """
    free = asyncio.Semaphore(lanes)
    end_s = asyncio.get_running_loop().time() + seconds
    return list(await asyncio.gather(*(_Shrinking(plans, free, name, end_s).of(one) for one, name in wishes)))


class _Shrinking(Generic[P, R]):
    """One search."""

    def __init__(self, plans: Shrinkable[P, R], free: asyncio.Semaphore, name: str, end_s: float) -> None:
        self._plans = plans
        self._free = free
        self._name = name
        self._end_s = end_s

    async def of(self, plan: P) -> ShrinkResult[R] | None:
        """Shrink."""
        failed = await self._failed(plan)
        if len(failed) < TWICE:
            return ShrinkResult(failed[0], steady=False) if failed else None
        known = {self._plans.simpler.key(plan)}
        while not self._is_over:
            fresh = (
                one
                for one in self._plans.simpler.candidates(plan)
                if self._plans.simpler.key(one) not in known
            )
            batch = list(islice(fresh, AT_ONCE))
            if not batch:
                break
            known.update(self._plans.simpler.key(one) for one in batch)
            runs = await asyncio.gather(*(self._failed(one, may_be_left=True) for one in batch))
            smaller = zip(batch, runs, strict=True)
            plan, failed = next((each for each in smaller if len(each[1]) == TWICE), (plan, failed))
        again = await self._failed(plan)
        return ShrinkResult(failed[0], steady=len(again) == TWICE)

    @property
    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._end_s

    async def _failed(self, plan: P, *, may_be_left: bool = False) -> list[R]:
        """The runs, of two, that show the same; after the end those that may be left are not begun."""

        async def one() -> R | None:
            async with self._free:
                return None if may_be_left and self._is_over else await self._plans.run(plan)

        runs = await asyncio.gather(*(one() for _ in range(TWICE)))
        return [run for run in runs if run is not None and self._plans.shows(run, self._name)]
