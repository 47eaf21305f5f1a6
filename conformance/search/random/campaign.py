"""Many runs: seeds one after the other or side by side; what fails is shrunk and written down."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from conformance.known.defects import KnownFindings
from conformance.search.live import Shrinkable, ShrinkResult, shrink_all
from conformance.search.random.case import ChaosCase
from conformance.search.random.client import ChaosClient
from conformance.search.random.corpus import Corpus
from conformance.search.random.draw import Setting, draw
from conformance.search.random.page import write_page
from conformance.search.random.replay import replay_of
from conformance.search.random.runs import Outcome, Wanted, outcomes
from conformance.search.random.schedule import Schedule, to_json
from conformance.search.random.shrink import candidates, shrinking
from conformance.search.random.verdict import RunVerdict, Word, verdict_on

FOLDER = Path(".fakebrokers") / "chaos"
JOURNAL = "journal"
SHRUNK_MAX = 10  #: kinds of failures that are shrunk; more of them are one defect seen from many sides
LIVE_SHRINK_S = 240.0  #: for all failures of a child process, which take real time
JudgedRun = tuple[ChaosCase, RunVerdict]

KNOWN = "known"  #: how a run has ended that shows nothing but what is expected


class FailedSeed(msgspec.Struct):
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


class ChaosCampaign:
    """One chaos campaign of one client.

    Args:
        folder: For replay files and the corpus; by default one of this client below the working directory.
        expected: What it is known to violate.
        contract: What has to hold of deliveries; "" for what the faults leave of the protocol's word.
        keeps_journals: Whether the journals of all runs are kept in the folder, for ``analyze``.
        processes: How many runs at once.

    Attributes:
        words: How many runs have ended how.
        left: Runs without a verdict, by seed, with the reason.
        causes: What is known, by root cause: how many runs have shown it.
    """

    def __init__(
        self,
        subject: ChaosClient,
        setting: Setting,
        folder: Path | None = None,
        *,
        expected: KnownFindings | None = None,
        contract: str = "",
        keeps_journals: bool = False,
        processes: int = 1,
    ) -> None:
        self.subject = subject
        self.setting = setting
        parts = (subject.name or "adapter", subject.protocol, subject.mutant)
        self.folder = folder or FOLDER / "-".join(part for part in parts if part)
        self.expected = expected or KnownFindings()
        self.contract = contract
        self.processes = processes
        self.journals = self.folder / JOURNAL if keeps_journals else None
        self.corpus = Corpus.load(self.folder)
        self.runs = 0
        self.seconds = 0.0
        self.words: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.causes: dict[str, int] = {}
        self.failed: list[FailedSeed] = []
        self._outcomes: list[Outcome] = []

    def go(
        self,
        seeds: Iterable[str],
        seconds: float | None = None,
        on_run: Callable[[ChaosCampaign, Outcome], None] = lambda _, __: None,
        on_shrink: Callable[[int, float], None] = lambda _, __: None,
    ) -> None:
        """Run the seeds that failed before, then these, until the time is over; then write down what failed.

        `on_shrink` gets how many failures are shrunk in real time, and the seconds that this takes at most.
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
            self._write_down(on_shrink if interrupt is None else None)
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
        word = outcome.word
        if word == Word.FAIL:
            schedule = draw(self.setting, outcome.seed)
            for cause in dict.fromkeys(self._causes(outcome.verdict, schedule).values()):
                self.causes[cause] = self.causes.get(cause, 0) + 1
            outcome = msgspec.structs.replace(outcome, verdict=self._news(outcome.verdict, schedule))
            word = outcome.word if outcome.word == Word.FAIL else KNOWN
        self.words[word] = self.words.get(word, 0) + 1
        if outcome.word == Word.FAIL:
            self._outcomes.append(outcome)
            self.corpus.add(self.setting, outcome.seed)
        else:
            self.corpus.drop(self.setting, outcome.seed)
        if outcome.reason:
            self.left[outcome.seed] = outcome.reason

    def _causes(self, verdict: RunVerdict, schedule: Schedule) -> dict[str, str]:
        """What is known of the findings of a run: the root cause of each, by name."""
        causes = {one.name: self.expected.cause_of(one, schedule) for one in verdict.found}
        return {name: cause for name, cause in causes.items() if cause}

    def _news(self, verdict: RunVerdict, schedule: Schedule) -> RunVerdict:
        """What no expectation is about."""
        return verdict.without(self._causes(verdict, schedule))

    # what failed

    def _write_down(self, on_shrink: Callable[[int, float], None] | None) -> None:
        """The first of each kind is shrunk, none of them without `on_shrink`; the others stay as they were.

        Raises:
            KeyboardInterrupt: It came while something was shrunk; all is written down.
        """
        self.corpus.save()
        interrupt: KeyboardInterrupt | None = None
        ordered = sorted(self._outcomes, key=lambda one: (one.names[0], len(one.seed), one.seed))
        shrunk: dict[str, ShrinkResult[JudgedRun]] = {}
        chosen = _some_of_each_kind(ordered, self._each) if on_shrink is not None else []
        try:
            if chosen and on_shrink is not None and self.subject.is_process:
                on_shrink(len(chosen), LIVE_SHRINK_S)
            for outcome, found in self._shrink(chosen):
                if found is not None and found.run[1].fails:  # in real time a run may go another way
                    shrunk[outcome.seed] = found
        except KeyboardInterrupt as error:
            interrupt = error
        for outcome in ordered:
            if outcome.seed in shrunk:
                (case, verdict), steady = shrunk[outcome.seed]
                self._keep(outcome, case, verdict, steady)
                write_page(case, verdict, self.failed[-1].path)
            else:
                case = ChaosCase(draw(self.setting, outcome.seed), [])
                case.digest = outcome.digest
                self._keep(outcome, case, outcome.verdict, None)
        if interrupt is not None:
            raise interrupt

    @property
    def _each(self) -> int:
        """Failures of a kind that are shrunk: in real time the first one may not come again."""
        return 2 if self.subject.is_process else 1

    def _shrink(self, chosen: list[Outcome]) -> Iterator[tuple[Outcome, ShrinkResult[JudgedRun] | None]]:
        """A run of the smallest schedule on which the same is found, and whether it is found twice more."""
        if not self.subject.is_process:
            for outcome in chosen:
                yield outcome, self._shrunk(outcome)
            return

        async def judged(schedule: Schedule) -> JudgedRun:
            case, verdict = await self.subject.judge_live(schedule, self.contract)
            return case, self._news(verdict, schedule)

        wishes = [(draw(self.setting, outcome.seed), outcome.names[0]) for outcome in chosen]
        plans = Shrinkable(judged, shows, candidates, to_json)
        found = asyncio.run(shrink_all(wishes, plans, self.processes, LIVE_SHRINK_S))
        yield from zip(chosen, found, strict=True)

    def _shrunk(self, outcome: Outcome) -> ShrinkResult[JudgedRun]:
        def judged(one: Schedule) -> JudgedRun:
            case = self.subject.run(one, self.contract)
            return case, self._news(verdict_on(case), one)

        def fails(one: Schedule) -> bool:
            return shows(judged(one), outcome.names[0])

        smallest = shrinking(fails).smallest(draw(self.setting, outcome.seed))
        steady = all(fails(smallest) for _ in range(2))
        return ShrinkResult(judged(smallest), steady)

    def _keep(self, outcome: Outcome, case: ChaosCase, verdict: RunVerdict, steady: bool | None) -> None:
        """Write a failure down."""
        subject = self.subject
        found = replay_of(subject.name, subject.mutant, case, verdict, contract=self.contract)
        path = found.write(self.folder)
        names, steps = list(found.anomalies), len(case.schedule.steps)
        self.failed.append(FailedSeed(outcome.seed, names, path, steps, steady, found.about, found.anomalies))

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
            "causes": self.causes,
        }


def shows(run: JudgedRun, name: str) -> bool:
    """Whether a run fails, and so."""
    _, verdict = run
    return verdict.fails and name in verdict.names


def _some_of_each_kind(outcomes: Iterable[Outcome], each: int) -> list[Outcome]:
    """The first few of each kind, by what was found first."""
    kinds: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        kinds.setdefault(outcome.names[0], []).append(outcome)
    return [outcome for some in list(kinds.values())[:SHRUNK_MAX] for outcome in some[:each]]


def _unique(seeds: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for seed in seeds:
        if seed not in seen:
            seen.add(seed)
            yield seed
