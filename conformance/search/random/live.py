"""The smallest schedules that a client in real time still fails: many runs side by side, each of them twice.

A run takes half a minute and waits most of it, so whole sets of simpler schedules are run at once, and the
greatest simplification that fails is taken. One that fails sometimes only is not taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import NamedTuple

from conformance.search.random.case import ChaosCase
from conformance.search.random.schedule import Schedule, to_json
from conformance.search.random.shrink import candidates
from conformance.search.random.verdict import RunVerdict

AT_ONCE = 6  #: simpler schedules of one search
TWICE = 2  #: runs that have to fail

#: Runs a schedule, and judges it.
Run = Callable[[Schedule], Awaitable[tuple[ChaosCase, RunVerdict]]]
#: A schedule, and the name of what was found there.
Wish = tuple[Schedule, str]


class ShrinkResult(NamedTuple):
    """A run of the smallest schedule, and whether each run of it has failed."""

    case: ChaosCase
    verdict: RunVerdict
    steady: bool


async def shrink_all(
    wishes: Sequence[Wish], run: Run, lanes: int, seconds: float
) -> list[ShrinkResult | None]:
    """Shrink all of them side by side.

    Args:
        lanes: How many runs at once.
        seconds: After which no simpler schedule is begun, and the best so far is taken.

    Returns:
        For each of them what it came to; None where not one run has failed again.
    """
    free = asyncio.Semaphore(lanes)
    end_s = asyncio.get_running_loop().time() + seconds
    return list(await asyncio.gather(*(_Shrinking(run, free, name, end_s).of(one) for one, name in wishes)))


class _Shrinking:
    """One search."""

    def __init__(self, run: Run, free: asyncio.Semaphore, name: str, end_s: float) -> None:
        self._run = run
        self._free = free
        self._name = name
        self._end_s = end_s

    async def of(self, schedule: Schedule) -> ShrinkResult | None:
        """Shrink."""
        failed = await self._failed(schedule)
        if len(failed) < TWICE:
            return ShrinkResult(*failed[0], steady=False) if failed else None
        best, known = failed, {to_json(schedule)}
        while not self._is_over:
            fresh = (one for one in candidates(best[0][0].schedule) if to_json(one) not in known)
            batch = list(islice(fresh, AT_ONCE))
            if not batch:
                break
            known.update(to_json(one) for one in batch)
            runs = await asyncio.gather(*(self._failed(one, may_be_left=True) for one in batch))
            best = next((each for each in runs if len(each) == TWICE), best)
        again = await self._failed(best[0][0].schedule)
        return ShrinkResult(*best[0], steady=len(again) == TWICE)

    @property
    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._end_s

    async def _failed(
        self, schedule: Schedule, *, may_be_left: bool = False
    ) -> list[tuple[ChaosCase, RunVerdict]]:
        """The runs, of two, that show the same; after that no further one is begun."""

        async def one() -> tuple[ChaosCase, RunVerdict] | None:
            async with self._free:
                return None if may_be_left and self._is_over else await self._run(schedule)

        runs = [each for each in await asyncio.gather(*(one() for _ in range(TWICE))) if each is not None]
        return [(case, verdict) for case, verdict in runs if self._name in verdict.names and verdict.fails]
