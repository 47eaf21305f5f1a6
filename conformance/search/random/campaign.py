"""Chaos: schedules are drawn from seeds, one after the other or side by side."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from conformance.known.defects import KnownFindings
from conformance.search.campaign import Campaign, OnShrink, WrittenFailure
from conformance.search.random.case import ChaosCase
from conformance.search.random.client import ChaosClient
from conformance.search.random.corpus import Corpus
from conformance.search.random.draw import Setting, draw
from conformance.search.random.history import KeptJournals
from conformance.search.random.page import write_page
from conformance.search.random.replay import ChaosReplay, replay_of
from conformance.search.random.runs import Outcome, Wanted, outcomes
from conformance.search.random.schedule import Schedule
from conformance.search.random.shrink import SIMPLER
from conformance.search.random.verdict import RunVerdict, Word, verdict_on
from conformance.search.shrink import ShrinkResult

JOURNAL = "journal"
SHRUNK_MAX = 10  #: kinds of failures that are shrunk; more of them are one defect seen from many sides
LIVE_SHRINK_S = 240.0  #: for all failures of a child process, which take real time
JudgedRun = tuple[ChaosCase, RunVerdict]

UNCONFIRMED = "unconfirmed"  #: how one has ended that fails on virtual time only
KNOWN = "known"  #: how a run has ended that shows nothing but what is expected


class ChaosCampaign(Campaign[ChaosClient, Schedule, JudgedRun]):
    """One chaos campaign of one client.

    Args:
        contract: What has to hold of deliveries; "" for what the faults leave of the protocol's word.
        keeps_journals: Whether the journals of all runs are kept in the folder, for ``analyze``.
        keeps_traces: Whether with all that passed, so that the rules of another day can judge them.

    Attributes:
        words: How many runs have ended how.
        left: Runs without a verdict, by seed, with the reason.
        causes: What is known, by root cause: how many runs have shown it.
    """

    kind = "chaos"
    simpler: ClassVar = SIMPLER

    def __init__(
        self,
        subject: ChaosClient,
        setting: Setting,
        folder: Path | None = None,
        *,
        expected: KnownFindings | None = None,
        contract: str = "",
        keeps_journals: bool = False,
        keeps_traces: bool = False,
        processes: int = 1,
    ) -> None:
        super().__init__(subject, folder, expected, processes)
        self.setting = setting
        self.contract = contract
        self.kept = KeptJournals(self.folder / JOURNAL, keeps_traces) if keeps_journals else None
        self.corpus = Corpus.load(self.folder)
        self.words: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.causes: dict[str, int] = {}
        self._outcomes: list[Outcome] = []  # that fail
        self._chosen: list[Outcome] = []  # of these, those that are shrunk

    def go(
        self,
        seeds: Iterable[str],
        seconds: float | None = None,
        on_run: Callable[[ChaosCampaign, Outcome], None] = lambda _, __: None,
        on_shrink: OnShrink = lambda _, __: None,
    ) -> None:
        """Run the seeds that failed before, then these, until the time is over; write down what failed."""
        until = None if seconds is None else time.monotonic() + seconds
        wanted = Wanted(self.setting, self.contract, self.kept, self.processes, until)

        def run_all() -> None:
            chosen = _unique(itertools.chain(self.corpus.seeds_of(self.setting), seeds))
            for outcome in outcomes(self.subject, chosen, wanted):
                self._take(outcome)
                on_run(self, outcome)

        self._search(run_all, LIVE_SHRINK_S, on_shrink)

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

    def _save(self) -> None:
        self.corpus.save()
        self._outcomes.sort(key=lambda one: (one.names[0], len(one.seed), one.seed))

    def _failures(self) -> Sequence[tuple[Schedule, str]]:
        """The first of each kind, by what was found first; in real time that may not come again."""
        if self.subject.is_confirmed:
            self._chosen = list(self._outcomes)
            return [(draw(self.setting, one.seed), one.names[0]) for one in self._chosen]
        each = 2 if self.subject.is_process else 1
        kinds: dict[str, list[Outcome]] = {}
        for outcome in self._outcomes:
            kinds.setdefault(outcome.names[0], []).append(outcome)
        self._chosen = [one for some in list(kinds.values())[:SHRUNK_MAX] for one in some[:each]]
        return [(draw(self.setting, one.seed), one.names[0]) for one in self._chosen]

    def _judged(self, plan: Schedule) -> JudgedRun:
        case = self.subject.run(plan, self.contract)
        return case, self._news(verdict_on(case), plan)

    async def _judged_live(self, plan: Schedule) -> JudgedRun:
        case, verdict = await self.subject.judge_live(plan, self.contract)
        return case, self._news(verdict, plan)

    def _replay(self, run: JudgedRun) -> ChaosReplay:
        return replay_of(self.subject.name, self.subject.mutant, *run, contract=self.contract)

    def _shows(self, run: JudgedRun, name: str) -> bool:
        return shows(run, name)

    def _names(self, run: JudgedRun) -> list[str]:
        return list(run[1].names)

    def _detail(self, number: int, name: str) -> str:
        return next(one.detail for one in self._chosen[number].verdict.found if one.name == name)

    def _write_down(self, found: Mapping[int, ShrinkResult[JudgedRun] | None]) -> None:
        shrunk = {self._chosen[number].seed: smallest for number, smallest in found.items()}
        alone = {self._chosen[number].seed for number in self.unconfirmed}
        if alone:
            self.words[Word.FAIL] -= len(alone)
            self.words[UNCONFIRMED] = len(alone)
        for outcome in self._outcomes:
            if outcome.seed in alone:
                continue
            smallest = shrunk.get(outcome.seed)
            steady: bool | None
            if smallest is not None:
                run, steady = smallest
            else:
                run = ChaosCase(draw(self.setting, outcome.seed), []), outcome.verdict
                run[0].digest = outcome.digest
                steady = False if outcome.seed in shrunk else None
            written = self._replay(run)
            path = written.write(self.folder)
            if smallest is not None:
                write_page(*run, path)
            self.failures.append(WrittenFailure(written, path, steady, seed=outcome.seed))

    def document(self) -> dict[str, Any]:
        """What ``fakebrokers chaos --json`` prints."""
        rows = [
            {
                "seed": one.seed,
                "anomalies": one.names,
                "replay": str(one.path),
                "faults": len(one.replay.plan.steps),
                "steady": one.steady,
            }
            for one in self.failures
        ]
        return {
            "runs": self.runs,
            "failed": rows,
            "seconds": round(self.seconds, 1),
            "engine": self.subject.engine,
            "verdicts": self.words,
            "without_verdict": self.left,
            "causes": self.causes,
            **({"unconfirmed": self.unconfirmed_rows} if self.subject.is_confirmed else {}),
        }


def shows(run: JudgedRun, name: str) -> bool:
    """Whether a run fails, and so."""
    _, verdict = run
    return verdict.fails and name in verdict.names


def _unique(seeds: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for seed in seeds:
        if seed not in seen:
            seen.add(seed)
            yield seed
