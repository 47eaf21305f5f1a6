"""Many runs: seeds one after the other or side by side; what fails is shrunk and written down."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from conformance.chaos.case import ChaosCase
from conformance.chaos.corpus import Corpus
from conformance.chaos.draw import Setting, draw
from conformance.chaos.page import write_page
from conformance.chaos.replay import replay_of
from conformance.chaos.runs import Outcome, Wanted, outcomes
from conformance.chaos.schedule import Schedule
from conformance.chaos.shrink import shrinking
from conformance.chaos.subject import Subject
from conformance.chaos.verdict import Verdict, Word, verdict_on

FOLDER = Path(".fakebrokers") / "chaos"
JOURNAL = "journal"
SHRUNK_MAX = 10  #: kinds of failures that are shrunk; more of them are one defect seen from many sides
LIVE_EVALUATIONS_MAX = 2  #: runs of a child process take real time
LIVE_SHRINK_S = 60.0  #: after which no further failure of a child process is shrunk


class Failed(msgspec.Struct):
    """A seed that failed, written down.

    Attributes:
        names: What was found.
        path: Of the replay file.
        faults: Steps of the schedule in it.
        steady: Of one that was shrunk: whether two more runs have failed the same way.
    """

    seed: str
    names: list[str]
    path: Path
    faults: int
    steady: bool | None = None
    about: str = ""
    sentences: dict[str, str] = {}


class Campaign:
    """One chaos campaign of one client.

    Args:
        folder: For replay files and the corpus; by default one of this client below the working directory.
        contract: What has to hold of deliveries; "" for what the faults leave of the protocol's word.
        keeps_journals: Whether the journals of all runs are kept in the folder, for ``analyze``.
        processes: How many runs at once.

    Attributes:
        words: How many runs have ended how.
        left: Runs without a verdict, by seed, with the reason.
    """

    def __init__(
        self,
        subject: Subject,
        setting: Setting,
        folder: Path | None = None,
        *,
        contract: str = "",
        keeps_journals: bool = False,
        processes: int = 1,
    ) -> None:
        self.subject = subject
        self.setting = setting
        parts = (subject.name or "adapter", subject.protocol, subject.mutant)
        self.folder = folder or FOLDER / "-".join(part for part in parts if part)
        self.contract = contract
        self.processes = processes
        self.journals = self.folder / JOURNAL if keeps_journals else None
        self.corpus = Corpus.load(self.folder)
        self.runs = 0
        self.seconds = 0.0
        self.words: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.failed: list[Failed] = []
        self._outcomes: list[Outcome] = []

    def go(
        self,
        seeds: Iterable[str],
        seconds: float | None = None,
        on_run: Callable[[Campaign, Outcome], None] = lambda _, __: None,
    ) -> None:
        """Run the seeds that failed before, then these, until the time is over; then write down what failed.

        An interrupt (Ctrl-C) ends the runs; what they have found is written down all the same.
        """
        begun = time.monotonic()
        until = None if seconds is None else begun + seconds
        interrupt: KeyboardInterrupt | None = None
        try:
            for outcome in self._run_all(self._with_corpus(seeds), until):
                self._take(outcome)
                on_run(self, outcome)
        except KeyboardInterrupt as error:
            interrupt = error
        try:
            self._write_down(shrinks=interrupt is None)
        finally:
            self.seconds = time.monotonic() - begun
        if interrupt is not None:
            raise interrupt

    def _with_corpus(self, seeds: Iterable[str]) -> Iterator[str]:
        return _unique(itertools.chain(self.corpus.seeds_of(self.setting), seeds))

    def _run_all(self, seeds: Iterator[str], until: float | None) -> Iterator[Outcome]:
        wanted = Wanted(self.setting, self.contract, self.journals, self.processes, until)
        return outcomes(self.subject, seeds, wanted)

    def _take(self, outcome: Outcome) -> None:
        self.runs += 1
        self.words[outcome.word] = self.words.get(outcome.word, 0) + 1
        if outcome.word == Word.FAIL:
            self._outcomes.append(outcome)
            self.corpus.add(self.setting, outcome.seed)
        else:
            self.corpus.drop(self.setting, outcome.seed)
        if outcome.reason:
            self.left[outcome.seed] = outcome.reason

    # what failed

    def _write_down(self, *, shrinks: bool) -> None:
        """The first of each kind is shrunk; the others are written down as they were.

        Raises:
            KeyboardInterrupt: It came while something was shrunk; all is written down.
        """
        self.corpus.save()
        interrupt: KeyboardInterrupt | None = None
        shrunk: set[str] = set()
        begun = time.monotonic()
        for outcome in sorted(self._outcomes, key=lambda one: (one.names[0], len(one.seed), one.seed)):
            first = outcome.names[0]
            late = self.subject.is_process and time.monotonic() - begun > LIVE_SHRINK_S
            if shrinks and not late and first not in shrunk and len(shrunk) < SHRUNK_MAX:
                shrunk.add(first)
                try:
                    self._keep(outcome, *self._shrunk(first, draw(self.setting, outcome.seed)))
                except KeyboardInterrupt as error:
                    interrupt, shrinks = error, False
                else:
                    continue
            self._keep_as_it_was(outcome)
        if interrupt is not None:
            raise interrupt

    def _shrunk(self, name: str, schedule: Schedule) -> tuple[ChaosCase, Verdict, bool]:
        """A run of the smallest schedule on which the same is found, and whether it is found twice more."""

        def verdict_of(one: Schedule) -> tuple[ChaosCase, Verdict]:
            case = self.subject.run(one, self.contract)
            return case, verdict_on(case)

        def fails(one: Schedule) -> bool:
            _, verdict = verdict_of(one)
            return verdict.word is Word.FAIL and name in verdict.names

        most = {"most": LIVE_EVALUATIONS_MAX} if self.subject.is_process else {}
        smallest = shrinking(fails, **most).smallest(schedule)
        steady = all(fails(smallest) for _ in range(2))
        return *verdict_of(smallest), steady

    def _keep(self, outcome: Outcome, case: ChaosCase, verdict: Verdict, steady: bool) -> None:
        if verdict.word is not Word.FAIL:  # in real time a run may go another way
            self._keep_as_it_was(outcome)
            return
        subject = self.subject
        found = replay_of(subject.name, subject.mutant, case, verdict, contract=self.contract)
        path = found.write(self.folder)
        write_page(case, verdict, path)
        self.failed.append(
            Failed(
                outcome.seed,
                list(found.anomalies),
                path,
                len(case.schedule.steps),
                steady,
                found.about,
                found.anomalies,
            )
        )

    def _keep_as_it_was(self, outcome: Outcome) -> None:
        schedule = draw(self.setting, outcome.seed)
        case = ChaosCase(schedule, [])
        case.digest = outcome.digest
        found = replay_of(
            self.subject.name, self.subject.mutant, case, outcome.verdict, contract=self.contract
        )
        path = found.write(self.folder)
        self.failed.append(
            Failed(
                outcome.seed,
                outcome.names,
                path,
                len(schedule.steps),
                None,
                found.about,
                found.anomalies,
            )
        )

    def document(self) -> dict[str, Any]:
        """What ``fakebrokers chaos --json`` prints."""
        rows = [
            {
                "seed": one.seed,
                "anomalies": one.names,
                "replay": str(one.path),
                "faults": one.faults,
                "steady": one.steady,
            }
            for one in self.failed
        ]
        return {
            "runs": self.runs,
            "failed": rows,
            "seconds": round(self.seconds, 1),
            "engine": self.subject.engine,
            "verdicts": self.words,
            "without_verdict": self.left,
        }


def _unique(seeds: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for seed in seeds:
        if seed not in seen:
            seen.add(seed)
            yield seed
