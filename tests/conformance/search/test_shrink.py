"""Shrinking where a run may come out otherwise: what fails twice is taken, what fails sometimes is not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from conformance.rules import Finding
from conformance.search.random.campaign import JudgedRun, shows
from conformance.search.random.case import ChaosCase
from conformance.search.random.schedule import Schedule, to_json
from conformance.search.random.shrink import SIMPLER
from conformance.search.random.verdict import RunVerdict, Word
from conformance.search.shrink import Shrinkable, ShrinkResult, shrink_all
from fakebrokers.core import virtual
from fakebrokers.faults.steps import Step

STEPS = tuple(
    Step("cut", float(number), 1.0, {"how": "rst", "times": 1}, f"step{number}") for number in range(4)
)
LONG = Schedule("narconi", "mixed", {"messages": 8}, STEPS, seconds=8.0)
FAILS = RunVerdict(Word.FAIL, (Finding("lives", "gone"),))


def shrunk(
    fails: Callable[[Schedule, int], bool], seconds: float = 60.0
) -> tuple[ShrinkResult[JudgedRun] | None, Counter[str]]:
    """What becomes of a schedule that fails as `fails` says of it and the number of its run."""
    runs: Counter[str] = Counter()

    async def run(schedule: Schedule) -> JudgedRun:
        key = to_json(schedule)
        runs[key] += 1
        verdict = FAILS if fails(schedule, runs[key]) else RunVerdict(Word.PASS)
        return ChaosCase(schedule, []), verdict

    [found] = asyncio.run(shrink_all([(LONG, "lives")], Shrinkable(run, shows, SIMPLER), 4, seconds))
    return found, runs


def has_third(schedule: Schedule) -> bool:
    return any(step.name == "step3" for step in schedule.steps)


def test_the_step_that_matters_is_left() -> None:
    found, _ = shrunk(lambda schedule, _: has_third(schedule))
    assert found is not None
    assert found.steady
    assert [step.name for step in found.run[0].schedule.steps] == ["step3"]
    assert found.run[0].schedule.params["messages"] == 1


def test_what_fails_sometimes_only_is_not_taken() -> None:
    found, _ = shrunk(lambda schedule, run: schedule == LONG or (has_third(schedule) and run % 2 == 1))
    assert found is not None
    assert found.run[0].schedule == LONG
    assert found.steady


def test_what_does_not_fail_again_is_told_so() -> None:
    assert shrunk(lambda *_: False)[0] is None
    found, runs = shrunk(lambda _, run: run == 1)
    assert found is not None
    assert not found.steady
    assert sum(runs.values()) == 2  # nothing is looked for where nothing is sure


def test_time_ends_a_search() -> None:
    found, runs = shrunk(lambda schedule, _: has_third(schedule), seconds=-1.0)
    assert found is not None
    assert found.run[0].schedule == LONG
    assert sum(runs.values()) == 4


def test_runs_that_wait_for_a_lane_are_not_begun_behind_the_end() -> None:
    begun: list[Schedule] = []

    async def run(schedule: Schedule) -> JudgedRun:
        begun.append(schedule)
        await asyncio.sleep(0.05)
        return ChaosCase(schedule, []), FAILS

    # the first two runs end at 0.1 s, the third begins before the end, and all others of its batch behind it
    plans = Shrinkable(run, shows, SIMPLER)
    [found] = virtual.run(shrink_all([(LONG, "lives")], plans, 1, 0.12))
    assert found is not None
    assert found.run[0].schedule == LONG and found.steady
    assert 2 + 2 <= len(begun) <= 2 + 1 + 2  # the last two tell whether what is left fails again
