"""What a client has done on virtual time is asked of a process of its own, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from conformance.search.shrink import Shrinkable

TRIES = 2  #: runs of one plan, until all is shown that was found there

P = TypeVar("P")  # a plan
R = TypeVar("R")  # a run of one, judged


class Answer(NamedTuple, Generic[R]):
    """What real time says of one finding.

    Attributes:
        last: The last run; None: no time was left for any.
        is_shown: Whether that run shows it.
    """

    last: R | None = None
    is_shown: bool = False


async def confirm_all(
    wishes: Sequence[tuple[P, str]], plans: Shrinkable[P, R], lanes: int, seconds: float
) -> list[Answer[R]]:
    """Run plans in real time, side by side; what each of them was to show.

    Args:
        wishes: Plans, each with the name of what was found there. First comes one plan of each name.
        lanes: How many runs at once.
        seconds: After which no run is begun.
    """
    free = asyncio.Semaphore(lanes)
    end_s = asyncio.get_running_loop().time() + seconds
    by_plan: dict[str, list[int]] = {}
    for number in _in_order([name for _, name in wishes]):
        by_plan.setdefault(plans.simpler.key(wishes[number][0]), []).append(number)
    answers: list[Answer[R]] = [Answer()] * len(wishes)

    async def ask(numbers: Sequence[int]) -> None:
        plan, open_ = wishes[numbers[0]][0], list(numbers)
        for _ in range(TRIES):
            async with free:
                if not open_ or asyncio.get_running_loop().time() >= end_s:
                    return
                run = await plans.run(plan)
            for number in open_:
                answers[number] = Answer(run, plans.shows(run, wishes[number][1]))
            open_ = [number for number in open_ if not answers[number].is_shown]

    await asyncio.gather(*(ask(numbers) for numbers in by_plan.values()))
    return answers


def _in_order(names: Sequence[str]) -> list[int]:
    """Numbers: the first of each name, the second of each ..."""
    seen: dict[str, int] = {}
    ranks = []
    for name in names:
        ranks.append(seen.get(name, 0))
        seen[name] = ranks[-1] + 1
    return sorted(range(len(names)), key=lambda number: ranks[number])
