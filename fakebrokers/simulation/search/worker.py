"""A process that runs schedules, each in a child of its own that is forked from it.

So every run finds the same modules in the same state, whatever ran before, and one that hangs is ended. It
reads a line of JSON for each run and answers with one: ``python -m fakebrokers.simulation.search.worker``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from typing import IO

import msgspec
from msgspec.structs import replace

from fakebrokers.errors import FakeBrokerError
from fakebrokers.faults import Realism
from fakebrokers.simulation.repeats import difference
from fakebrokers.simulation.search.children import Told, end_of, heard, quiet, tell
from fakebrokers.simulation.search.draw import draw, kinds
from fakebrokers.simulation.search.lines import Place, lines_of, reaching
from fakebrokers.simulation.search.machine import choices_of
from fakebrokers.simulation.search.run import Outcome, Run
from fakebrokers.simulation.search.schedule import Schedule
from fakebrokers.simulation.search.steering import Corpus, changed
from fakebrokers.simulation.search.survey import Survey
from fakebrokers.simulation.search.world import World, find_world


class Setting(msgspec.Struct, frozen=True):
    """What is searched: the first line.

    Attributes:
        coverage: Modules whose lines steer what is tried next.
    """

    main: str
    checks: list[str]
    seconds: float
    shuffle: bool
    realism: str
    faults: list[str]
    coverage: list[str] = []


class Wish(msgspec.Struct, frozen=True):
    """A run that is wanted.

    Attributes:
        seed: Of a schedule that is to be drawn.
        schedule: Or one that is there.
        twice: Run it twice, and compare.
        tells: Say what happened.
    """

    seed: int = 0
    schedule: Schedule | None = None
    twice: bool = False
    tells: bool = False


class Answer(msgspec.Struct):
    """How it ended, or why it could not be run.

    Attributes:
        reached: Lines that no run of this worker had reached before.
        lines: All that can be reached, by file; with the first answer.
    """

    outcome: Outcome | None = None
    problem: str = ""
    reached: list[Place] = []
    lines: dict[str, list[int]] = {}


class Worker:
    """Runs schedules of one world."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._kinds = kinds(Realism(setting.realism), setting.faults)
        modules = [each.partition(":")[0] for each in (setting.main, *setting.checks)]
        with explained_asserts([*modules, *setting.coverage]):
            self._world: World = find_world(setting.main, setting.checks)
            self._lines = lines_of(setting.coverage)
        self._corpus = Corpus()
        self._survey: Survey | None = None

    def survey(self) -> Answer:
        """The run that nothing disturbs, twice.

        Where a run leaves nothing in the modules that a later one sees, this process runs it, too: what is
        made at the first use is there for all children then. Of a state machine no rule runs at first, and
        those of the seed 0 here.
        """
        plain = Schedule(0, self._setting.seconds)
        wish = Wish(schedule=plain, twice=True, tells=True)
        answer = self.answer(wish, surveys=True)
        outcome = answer.outcome
        self._survey = None if outcome is None else outcome.survey
        if outcome is not None and outcome.failure is None and not outcome.differs:
            usual = replace(plain, choices=self._choices(0))
            after_another = self._forked(usual, wish, before=usual)
            if not difference(after_another.lines, self._forked(usual, wish).lines):
                with quiet():
                    Run(self._world, usual).go()
        gc.collect()
        gc.freeze()
        answer.lines = self._lines
        return answer

    def answer(self, wish: Wish, *, surveys: bool = False) -> Answer:
        """Run what is wanted."""
        schedule = wish.schedule or self._plan(wish)
        told = self._forked(schedule, wish, surveys=surveys)
        outcome = told.outcome
        if outcome is None:
            return Answer(problem=told.problem)
        if told.reached and outcome.survey is not None:
            self._corpus.add(schedule, outcome.survey, dict(told.reached))
        if wish.twice:
            outcome.differs = difference(told.lines, self._forked(schedule, wish).lines)
        return Answer(outcome, reached=[place for place, _ in told.reached])

    def _plan(self, wish: Wish) -> Schedule:
        """The schedule of a seed: drawn, or one that has reached something new with a change."""
        kept = self._corpus.choose(wish.seed) if self._lines else None
        if kept is None:
            return self._draw(wish)
        return changed(kept, wish.seed, self._window(kept.survey), self._kinds)

    def _window(self, survey: Survey) -> float:
        """Virtual seconds in which faults may be: where only `main` checks, none after it has ended."""
        seconds = self._setting.seconds
        return seconds if self._setting.checks else min(seconds, max(1.0, survey.ended_s))

    def _draw(self, wish: Wish) -> Schedule:
        """One drawn from the seed; of a state machine whose rules fail by themselves one without faults."""
        setting, survey = self._setting, self._survey
        choices = self._choices(wish.seed)
        if choices:
            plain = Schedule(wish.seed, setting.seconds, setting.shuffle, choices=choices)
            outcome = self._forked(plain, wish, surveys=True).outcome
            if outcome is None or outcome.failure is not None:
                return plain
            survey = outcome.survey
        assert survey is not None
        drawn = draw(wish.seed, survey, self._window(survey), self._kinds, shuffle=setting.shuffle)
        return replace(drawn, choices=choices)

    def _choices(self, seed: int) -> bytes:
        return choices_of(seed) if self._world.is_machine else b""

    def _forked(
        self, schedule: Schedule, wish: Wish, *, surveys: bool = False, before: Schedule | None = None
    ) -> Told:
        reading, writing = os.pipe()
        output = os.memfd_create("output")
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(output, 1)
            os.dup2(output, 2)
            tell(writing, lambda: self._run(schedule, wish, surveys, before))
        os.close(writing)
        try:
            told = heard(reading, child, schedule)
            if told.outcome is not None and (told.outcome.failure is not None or wish.tells):
                told.outcome.output = end_of(output)
            return told
        finally:
            os.close(reading)
            os.close(output)

    def _run(self, schedule: Schedule, wish: Wish, surveys: bool, before: Schedule | None) -> Told:
        """In a child."""
        if before is not None:
            Run(self._world, before).go()
        run = Run(self._world, schedule)
        outcome, reached = self._traced(run, surveys)
        if wish.tells:
            outcome.story = run.story(outcome)
        lines = [*map(str, run.transcript()), str(outcome.failure)] if wish.twice else []
        return Told(outcome, lines, reached)

    def _traced(self, run: Run, surveys: bool) -> tuple[Outcome, list[tuple[Place, float]]]:
        """Run it; how it ended, and the lines that no run before had reached, with their virtual times."""
        if not self._lines:
            return run.go(surveys=surveys), []
        with reaching(self._lines) as seen:
            outcome = run.go(surveys=True)
        return outcome, [(place, at) for place, at in seen.items() if place not in self._corpus.seen]


@contextlib.contextmanager
def explained_asserts(modules: list[str]) -> Iterator[None]:
    """What is imported inside says what its asserts compare, as in tests, if this pytest can do that."""
    try:
        from _pytest.assertion import install_importhook
        from _pytest.config import get_config

        config = get_config()
        hook = install_importhook(config)
        hook.mark_rewrite(*modules)
    except Exception:  # pytest's own affair, which may change; then they say their line
        yield
        return
    try:
        yield
    finally:
        sys.meta_path.remove(hook)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more requests."""

    def say(answer: Answer) -> None:
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()

    try:
        worker = Worker(msgspec.json.decode(requests.readline(), type=Setting))
        say(worker.survey())
    except FakeBrokerError as error:
        say(Answer(problem=str(error)))
        return
    for line in requests:
        say(worker.answer(msgspec.json.decode(line, type=Wish)))


def main() -> None:
    """The program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what modules print when they are imported is no answer
    with contextlib.suppress(BrokenPipeError):
        serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
