"""A process that runs schedules, each in a child of its own that is forked from it.

So every run finds the same modules in the same state, whatever ran before, and one that hangs is ended. It
reads a line of JSON for each run and answers with one: ``python -m fakebrokers.simulation.search.worker``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import IO, NoReturn

import msgspec
from msgspec.structs import replace

from fakebrokers.errors import FakeBrokerError
from fakebrokers.faults import Realism
from fakebrokers.simulation.repeats import difference
from fakebrokers.simulation.search.draw import draw, kinds
from fakebrokers.simulation.search.machine import choices_of
from fakebrokers.simulation.search.run import Outcome, Run
from fakebrokers.simulation.search.schedule import Failure, Schedule
from fakebrokers.simulation.search.survey import Survey
from fakebrokers.simulation.search.world import World, find_world

#: Of the processor, for one run.
CPU_S = 60
#: Of real time: a run that uses no processor and does not end waits for something real.
REAL_S = 300.0
OUTPUT_MAX = 4000


class Setting(msgspec.Struct, frozen=True):
    """What is searched: the first line."""

    main: str
    checks: list[str]
    seconds: float
    shuffle: bool
    realism: str
    faults: list[str]


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
    """How it ended, or why it could not be run."""

    outcome: Outcome | None = None
    problem: str = ""


class _Told(msgspec.Struct):
    """What a child says: an outcome and what happened, or why there is none."""

    outcome: Outcome | None = None
    lines: list[str] = []
    problem: str = ""


class Worker:
    """Runs schedules of one world."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._kinds = kinds(Realism(setting.realism), setting.faults)
        with explained_asserts([each.partition(":")[0] for each in (setting.main, *setting.checks)]):
            self._world: World = find_world(setting.main, setting.checks)
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
        return answer

    def answer(self, wish: Wish, *, surveys: bool = False) -> Answer:
        """Run what is wanted."""
        schedule = wish.schedule or self._draw(wish)
        told = self._forked(schedule, wish, surveys=surveys)
        if told.outcome is None:
            return Answer(problem=told.problem)
        if wish.twice:
            told.outcome.differs = difference(told.lines, self._forked(schedule, wish).lines)
        return Answer(told.outcome)

    def _draw(self, wish: Wish) -> Schedule:
        """The schedule of a seed; of a state machine whose rules fail by themselves one without faults."""
        setting, survey = self._setting, self._survey
        choices = self._choices(wish.seed)
        if choices:
            plain = Schedule(wish.seed, setting.seconds, setting.shuffle, choices=choices)
            outcome = self._forked(plain, wish, surveys=True).outcome
            if outcome is None or outcome.failure is not None:
                return plain
            survey = outcome.survey
        assert survey is not None
        seconds = setting.seconds if setting.checks else min(setting.seconds, max(1.0, survey.ended_s))
        drawn = draw(wish.seed, survey, seconds, self._kinds, shuffle=setting.shuffle)
        return replace(drawn, choices=choices)

    def _choices(self, seed: int) -> bytes:
        return choices_of(seed) if self._world.is_machine else b""

    def _forked(
        self, schedule: Schedule, wish: Wish, *, surveys: bool = False, before: Schedule | None = None
    ) -> _Told:
        reading, writing = os.pipe()
        output = os.memfd_create("output")
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(output, 1)
            os.dup2(output, 2)
            _tell(writing, lambda: self._run(schedule, wish, surveys, before))
        os.close(writing)
        try:
            told = _heard(reading, child, schedule)
            if told.outcome is not None and (told.outcome.failure is not None or wish.tells):
                told.outcome.output = _end_of(output)
            return told
        finally:
            os.close(reading)
            os.close(output)

    def _run(self, schedule: Schedule, wish: Wish, surveys: bool, before: Schedule | None) -> _Told:
        """In a child."""
        if before is not None:
            Run(self._world, before).go()
        run = Run(self._world, schedule)
        outcome = run.go(surveys=surveys)
        if wish.tells:
            outcome.story = run.story(outcome)
        lines = [*map(str, run.transcript()), str(outcome.failure)] if wish.twice else []
        return _Told(outcome, lines)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing that is printed inside is seen."""
    sys.stderr.flush()
    nowhere, kept = os.open(os.devnull, os.O_WRONLY), os.dup(2)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept, 1)
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


def _tell(writing: int, work: Callable[[], _Told]) -> NoReturn:
    """In a child: do it, say what came of it, and end."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        try:
            told = work()
        except FakeBrokerError as error:
            told = _Told(problem=str(error))
        except BaseException:
            told = _Told(problem=traceback.format_exc())
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(told))
    finally:
        os._exit(0)


def _heard(reading: int, child: int, schedule: Schedule) -> _Told:
    """What a child has said; where it said nothing, that is how the run ended."""
    pieces = []
    in_time = True
    while in_time:
        in_time = bool(select.select([reading], [], [], REAL_S)[0])
        piece = os.read(reading, 1 << 16) if in_time else b""
        if not piece:
            break
        pieces.append(piece)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if pieces and in_time:
        return msgspec.msgpack.decode(b"".join(pieces), type=_Told)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if not in_time:
        text = f"the run waited {REAL_S:g} s for something real, such as a lock of another thread"
    elif killed in (signal.SIGXCPU, signal.SIGKILL):
        text = f"the run took {CPU_S} s of the processor and was ended: a loop that never awaits?"
    else:
        text = f"the run's process ended with status {status}"
    return _Told(Outcome(schedule, Failure("Hang" if not in_time or killed else "Crash", text)))


def _end_of(output: int) -> str:
    size = os.fstat(output).st_size
    return os.pread(output, OUTPUT_MAX, max(0, size - OUTPUT_MAX)).decode(errors="replace")


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
