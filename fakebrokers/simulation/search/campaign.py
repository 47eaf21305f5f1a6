"""Many seeds of one world in several workers; what fails is shrunk and written down."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from fakebrokers.errors import UsageError
from fakebrokers.faults.search import smallest_in_time, tries
from fakebrokers.faults.steps import FAULT
from fakebrokers.simulation.search.asked import Asked, worker_for
from fakebrokers.simulation.search.lines import Place
from fakebrokers.simulation.search.run import Outcome
from fakebrokers.simulation.search.schedule import (
    SEEDS_OF_A_HASH,
    Found,
    Schedule,
    candidates,
    hash_seed,
    key,
)
from fakebrokers.simulation.search.worker import Answer, Setting, Wish

#: Runs that shrinking one failure may cost.
SHRINK_MAX = 300
#: Kinds of failures that are shrunk; more of them are one defect seen from many sides.
SHRUNK_MAX = 10
#: Of so many seeds the first is run twice, to see whether it repeats; all that fail are, too.
TWICE_EVERY = 100


class Failed(msgspec.Struct):
    """A kind of failure.

    Attributes:
        seeds: All that have shown it.
        outcome: Of the smallest schedule that was found.
        was: How many faults the schedule had that was drawn.
        steady: Whether that failed each time.
        path: Of the file, once it is written.
    """

    name: str
    seeds: list[int]
    outcome: Outcome
    was: int
    steady: bool = True
    path: Path | None = None


class Campaign:
    """A search.

    Args:
        processes: How many workers at once.
        twice: Run every seed twice.

    Attributes:
        runs: Seeds that were run.
        failed: By the name of the failure.
        differing: Seeds that did not repeat, with the first difference.
        cpu_s, shrinking_cpu_s: What the seeds, and what shrinking has cost.
        plain: The run that nothing disturbed.
        hash_matters: It was another one in a process with another order of sets of strings.
        lines: Lines of the application that can be reached, by file, if they steer the search.
        reached: Those that were.
    """

    def __init__(self, setting: Setting, *, processes: int = 1, twice: bool = False) -> None:
        self.setting = setting
        self.runs = 0
        self.failed: dict[str, Failed] = {}
        self.differing: dict[int, str] = {}
        self.cpu_s = self.shrinking_cpu_s = 0.0
        self.plain: Outcome | None = None
        self.hash_matters = False
        self.lines: dict[str, list[int]] = {}
        self.reached: set[Place] = set()
        self._processes = processes
        self._twice = twice

    @property
    def bad(self) -> int:
        """How many seeds have failed."""
        return sum(len(each.seeds) for each in self.failed.values())

    async def go(self, seeds: Sequence[int], seconds: float | None, on_run: Callable[[], None]) -> None:
        """Run the seeds, as long as there is time.

        Args:
            seconds: Real ones.

        Raises:
            UsageError: The world cannot be run.
        """
        begun, before = time.monotonic(), os.times()
        until = math.inf if seconds is None else begun + seconds
        # what was reached steers what comes next, within a part: it must not depend on how many run at once
        parts = deque(_parts(seeds, 1 if self.setting.coverage else self._processes))

        async def work() -> None:
            while parts and time.monotonic() < until:
                await self._run_part(parts.popleft(), until, on_run)

        try:
            await _together(work() for _ in range(min(self._processes, len(parts))))
        finally:
            self.cpu_s += _since(before)
            for each in self.failed.values():
                each.seeds.sort()  # workers have found them in any order
            self.failed = dict(sorted(self.failed.items(), key=lambda item: item[1].seeds))

    async def _run_part(self, seeds: Sequence[int], until: float, on_run: Callable[[], None]) -> None:
        async with self._worker(seeds[0]) as worker:
            if self._is_hopeless():
                return
            for seed in seeds:
                if time.monotonic() >= until:
                    return
                twice = self._twice or seed % TWICE_EVERY == 1
                self._take(seed, await worker.ask(Wish(seed, twice=twice)))
                on_run()

    def _is_hopeless(self) -> bool:
        """Whether the run without any fault says it all already.

        Raises:
            UsageError: There is nothing that faults could be about.
        """
        plain = self.plain
        assert plain is not None
        if plain.failure is not None or plain.differs:
            if not self.failed and not self.differing:
                self._take(plain.schedule.seed, plain)
            return True
        survey = plain.survey
        if survey is not None and not (survey.brokers or survey.applications or self.setting.shuffle):
            raise UsageError(
                f"{self.setting.main} has made no broker and started no application: nothing to disturb"
            )
        return False

    def _take(self, seed: int, outcome: Outcome) -> None:
        self.runs += 1
        if outcome.differs:
            self.differing[seed] = outcome.differs
        elif outcome.failure is not None:
            name = outcome.failure.name
            known = self.failed.setdefault(name, Failed(name, [], outcome, len(outcome.schedule.steps)))
            known.seeds.append(seed)
            if _plainness(outcome) < _plainness(known.outcome):
                known.outcome, known.was = outcome, len(outcome.schedule.steps)

    async def shrink(self, on_shrink: Callable[[str], None]) -> None:
        """Find the smallest schedule for each kind of failure."""
        before = os.times()
        waiting = deque(list(self.failed.values())[:SHRUNK_MAX])

        async def work() -> None:
            while waiting:
                await self._shrink(waiting.popleft())

        if waiting:
            on_shrink(f"shrinking {len(waiting)} failure{'s' * (len(waiting) > 1)}")
        try:
            await _together(work() for _ in range(min(self._processes, len(waiting))))
        finally:
            self.shrinking_cpu_s += _since(before)

    async def _shrink(self, failed: Failed) -> None:
        schedule = failed.outcome.schedule
        async with self._worker(schedule.seed) as worker:

            async def fails(one: Schedule) -> bool:
                failure = (await worker.ask(Wish(schedule=one))).failure
                return failure is not None and failure.name == failed.name

            failed.steady = await fails(schedule)
            if failed.steady:
                steps = tries(schedule, candidates, key, SHRINK_MAX)
                schedule = await smallest_in_time(steps, schedule, fails, math.inf)
            last = await worker.ask(Wish(schedule=schedule, twice=True, tells=True))
        if last.differs:
            self.differing[schedule.seed] = last.differs
        if last.failure is not None and last.failure.name == failed.name:
            failed.outcome = last
        else:
            failed.steady = False

    async def replay(self, schedule: Schedule) -> Outcome:
        """One schedule, twice, with what happens in it."""
        async with self._worker(schedule.seed) as worker:
            return await worker.ask(Wish(schedule=schedule, twice=True, tells=True))

    @asynccontextmanager
    async def _worker(self, seed: int) -> AsyncIterator[Asked]:
        """A worker for seeds that have the same order of sets of strings as this one."""
        async with worker_for(seed, self._take_lines) as worker:
            worker.send(self.setting)
            self._take_plain(await worker.answer())
            yield worker

    def _take_lines(self, answer: Answer) -> None:
        self.lines = answer.lines or self.lines
        self.reached.update(answer.reached)

    def missed(self) -> dict[str, list[int]]:
        """The lines that no run has reached, by file."""
        return {
            file: [line for line in lines if (file, line) not in self.reached]
            for file, lines in self.lines.items()
        }

    def _take_plain(self, outcome: Outcome) -> None:
        self.plain = self.plain or outcome
        self.hash_matters = self.hash_matters or self.plain.digest != outcome.digest

    def write(self, folder: Path) -> None:
        """Write the files of all that failed into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for failed in self.failed.values():
            outcome = failed.outcome
            failed.path = folder / f"seed-{outcome.schedule.seed}.json"
            Found(outcome.schedule, failed.name, outcome.digest).write(failed.path)
            story = "\n".join([*outcome.story, "", failed_text(outcome), ""])
            failed.path.with_suffix(".txt").write_text(story, encoding="utf-8")


def failed_text(outcome: Outcome) -> str:
    """The way to a failure, and what was printed."""
    assert outcome.failure is not None
    return f"{outcome.failure.trace}\n{outcome.output}"


def _plainness(outcome: Outcome) -> tuple[int, ...]:
    """Less for what is easier to understand: few faults, crashes rather than lost frames, few rules."""
    schedule = outcome.schedule
    frames = sum(step.kind == FAULT for step in schedule.steps)
    return len(schedule.steps), frames, len(schedule.choices), schedule.seed


def _parts(seeds: Sequence[int], processes: int) -> list[list[int]]:
    """Seeds that one worker runs one after the other: all with the same order of sets of strings."""
    size = min(SEEDS_OF_A_HASH, math.ceil(len(seeds) / processes))
    parts: list[list[int]] = []
    for seed in seeds:
        if not parts or len(parts[-1]) == size or hash_seed(parts[-1][0]) != hash_seed(seed):
            parts.append([])
        parts[-1].append(seed)
    return parts


def _since(before: os.times_result) -> float:
    """Seconds of the processor, those of workers that have ended too."""
    return sum(os.times()[:4]) - sum(before[:4])


async def _together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All of them; the first that fails ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
