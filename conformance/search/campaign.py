"""What sweep and chaos share: runs until the time is over; what failed is shrunk and written down.

The two are strategies: one draws specs, the other schedules, and each keeps where the next campaign goes on.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from conformance.known.defects import KnownFindings
from conformance.run.held import holdings_recorded
from conformance.run.simulated import NeedsProcess
from conformance.search.client import SearchClient
from conformance.search.confirm import Answer, confirm_all
from conformance.search.live import SIDE_BY_SIDE
from conformance.search.replay import ReplayFile
from conformance.search.shrink import TWICE, Shrinkable, ShrinkResult, Simpler, shrink_all

S = TypeVar("S", bound=SearchClient)
P = TypeVar("P")  # a plan
R = TypeVar("R")  # a run of one, judged

NOT_AGAIN = "it did not fail again; the machine had kept client or harness waiting"
CONFIRM_SHARE = 0.7  #: of the time besides; what is left makes smaller what real time shows, too

#: Gets how many failures are shrunk in real time, and the seconds that this takes at most.
OnShrink = Callable[[int, float], None]


class WrittenFailure(msgspec.Struct):
    """One kind of failure, written down as the smallest plan that shows it.

    Attributes:
        steady: Whether two more runs have failed the same way; None: it was not run again.
        count: How many runs of the campaign have failed so.
        seed: Of the plan that failed first; "" where plans have none.
    """

    replay: ReplayFile[Any, Any]
    path: Path
    steady: bool | None = None
    count: int = 1
    seed: str = ""

    @property
    def names(self) -> list[str]:
        """What was found."""
        return list(self.replay.found)


class Unconfirmed(msgspec.Struct):
    """What a client does on virtual time only, or only where the machine has no time for it: no finding.

    Attributes:
        about: The plan in words.
        name, detail: What was found, and what happened.
        real: What a process of its own does, in real time.
    """

    about: str
    name: str
    detail: str
    real: str


class Campaign(ABC, Generic[S, P, R]):
    """A search for what one client does wrong.

    Args:
        folder: For replay files and for where the next campaign goes on; by default one of this client below
            the working directory.
        expected: What the client is known to violate.
        processes: How many runs at once.

    Attributes:
        runs: How many so far.
        failures: What was written down.
        unconfirmed: What real time does not show.
        kind: The name of the folder for all clients.
        simpler: How a plan becomes simpler.
    """

    kind: ClassVar[str]
    simpler: ClassVar[Simpler[Any]]

    def __init__(
        self, subject: S, folder: Path | None, expected: KnownFindings | None, processes: int
    ) -> None:
        self.subject = subject
        parts = (subject.name or "adapter", subject.protocol, subject.mutant)
        self.folder = folder or Path(".fakebrokers", self.kind, "-".join(part for part in parts if part))
        self.expected = expected or KnownFindings()
        self.processes = processes
        self.runs = 0
        self.seconds = 0.0
        self.failures: list[WrittenFailure] = []
        self.unconfirmed: dict[int, Unconfirmed] = {}  #: by their place in `_failures`

    @property
    def unconfirmed_rows(self) -> list[dict[str, str]]:
        """What real time does not show, for JSON."""
        return [msgspec.to_builtins(one) for one in self.unconfirmed.values()]

    def _search(self, run_all: Callable[[], None], shrink_s: float, on_shrink: OnShrink) -> None:
        """Do all runs; then shrink what failed, and write it down.

        An interrupt (Ctrl-C) ends the runs or the shrinking; what was found is written down all the same.

        Args:
            run_all: Runs plans until the time is over, and keeps what fails.
            shrink_s: What the shrinking of a process may take, in real time.
        """
        begun = time.monotonic()
        interrupt: KeyboardInterrupt | None = None
        try:
            run_all()
        except KeyboardInterrupt as error:
            interrupt = error
        finally:
            self._save()
        found: dict[int, ShrinkResult[R] | None] = {}
        try:
            wishes = self._failures()
            if interrupt is None:
                with holdings_recorded():  # a page is written of the smallest run
                    found.update(self._shrunk(wishes, shrink_s, on_shrink))
        except KeyboardInterrupt as error:
            interrupt = error
        self._write_down(found)
        self.seconds = time.monotonic() - begun
        if interrupt is not None:
            raise interrupt

    # what a strategy says

    @abstractmethod
    def _save(self) -> None:
        """Write down where the next campaign goes on."""

    @abstractmethod
    def _failures(self) -> Sequence[tuple[P, str]]:
        """The plans to shrink, each with the name of what was found there."""

    @abstractmethod
    def _judged(self, plan: P) -> R:
        """Run a plan in this process, and judge it."""

    @abstractmethod
    async def _judged_live(self, plan: P) -> R:
        """The same for a client in a process."""

    @abstractmethod
    def _replay(self, run: R) -> ReplayFile[Any, Any]:
        """Its replay file."""

    @abstractmethod
    def _shows(self, run: R, name: str) -> bool:
        """Whether this was found in it."""

    @abstractmethod
    def _names(self, run: R) -> list[str]:
        """What was found in it that is news."""

    @abstractmethod
    def _detail(self, number: int, name: str) -> str:
        """What has happened where one of `_failures` was found."""

    @abstractmethod
    def _write_down(self, found: Mapping[int, ShrinkResult[R] | None]) -> None:
        """Write down what failed.

        Args:
            found: What became of those `_failures` that were run again, by their place; None of one that did
                not fail again. Those in `unconfirmed` are no failures.
        """

    def _was_starved(self, number: int) -> bool:
        """Whether the machine had kept client or harness waiting where one of `_failures` was found."""
        return False

    def _is_starved(self, run: R) -> bool:
        """Whether it has kept them waiting in a run."""
        return False

    def _shows_alone(self, run: R, name: str) -> bool:
        """Whether this was found, and not in a run for which the machine had no time."""
        return self._shows(run, name) and not self._is_starved(run)

    # what follows from it

    def _shrunk(
        self, wishes: Sequence[tuple[P, str]], seconds: float, on_shrink: OnShrink
    ) -> Iterator[tuple[int, ShrinkResult[R] | None]]:
        """A run of the smallest plan on which the same is found, and whether it was found each time."""
        if self.subject.is_confirmed:
            if wishes:
                on_shrink(len(wishes), seconds)
                yield from self._confirmed(wishes, seconds)
        elif not self.subject.is_process:
            yield from enumerate(self._smallest(*wish) for wish in wishes)
        elif wishes:
            on_shrink(len(wishes), seconds)
            plans = Shrinkable(self._judged_live, self._shows_alone, self.simpler)
            results = asyncio.run(shrink_all(wishes, plans, self.processes, seconds))
            for number, ((plan, name), result) in enumerate(zip(wishes, results, strict=True)):
                if result is None and self._was_starved(number):
                    detail = self._detail(number, name)
                    self.unconfirmed[number] = Unconfirmed(str(plan), name, detail, NOT_AGAIN)
                else:
                    yield number, result

    def _confirmed(
        self, wishes: Sequence[tuple[P, str]], seconds: float
    ) -> Iterator[tuple[int, ShrinkResult[R]]]:
        """What real time shows, too: made smaller on virtual time, where real time shows that as well.

        A busy machine is no excuse here: on virtual time there was none.
        """
        end_s = time.monotonic() + seconds
        answers = self._ask(wishes, seconds * CONFIRM_SHARE)
        shown = {number: one.last for number, one in enumerate(answers) if one.is_shown}
        for number, (plan, name) in enumerate(wishes):
            if number not in shown:
                real = self._in_real_time(answers[number].last)
                self.unconfirmed[number] = Unconfirmed(str(plan), name, self._detail(number, name), real)
        smaller = [
            (number, self._smallest_plan(*wishes[number], end_s), wishes[number][1]) for number in shown
        ]
        again = self._ask([(plan, name) for _, plan, name in smaller], end_s - time.monotonic())
        for (number, _, _), answer in zip(smaller, again, strict=True):
            run = answer.last if answer.is_shown else shown[number]
            assert run is not None
            yield number, ShrinkResult(run, steady=answer.is_shown or answer.last is None)

    def _in_real_time(self, run: R | None) -> str:
        """What a run in real time has shown, for people."""
        if run is None:
            return "not run, for lack of time"
        names = self._names(run)
        return f"fails otherwise: {', '.join(names)}" if names else "passes"

    def _ask(self, wishes: Sequence[tuple[P, str]], seconds: float) -> list[Answer[R]]:
        plans = Shrinkable(self._judged_live, self._shows, self.simpler)
        return asyncio.run(confirm_all(wishes, plans, SIDE_BY_SIDE, seconds))

    def _smallest_plan(self, plan: P, name: str, end_s: float) -> P:
        def fails(one: P) -> bool:
            return time.monotonic() < end_s and self._shows_here(one, name)

        smallest: P = self.simpler.search(fails).smallest(plan)
        return smallest

    def _shows_here(self, plan: P, name: str) -> bool:
        """Whether a run in this process shows it."""
        try:
            return self._shows(self._judged(plan), name)
        except NeedsProcess:
            return False

    def _smallest(self, plan: P, name: str) -> ShrinkResult[R] | None:
        search = self.simpler.search(lambda one: self._shows(self._judged(one), name))
        smallest = search.smallest(plan)
        shown = [run for run in (self._judged(smallest) for _ in range(TWICE)) if self._shows(run, name)]
        return ShrinkResult(shown[0], len(shown) == TWICE) if shown else None
