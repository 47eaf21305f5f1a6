"""A sweep: specs in an order that soon reaches every kind of disturbance, with a ledger of what was run."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from conformance.coverage.meter import CoverageMeter
from conformance.coverage.meter import spec as label_of
from conformance.known.defects import KnownFindings
from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.inprocess import run
from conformance.run.specs import PLAIN, Spec
from conformance.search.campaign import Campaign, OnShrink, WrittenFailure
from conformance.search.client import SearchClient
from conformance.search.fixed import TRIES
from conformance.search.live import SIDE_BY_SIDE
from conformance.search.shrink import ShrinkResult
from conformance.search.systematic.children import Child, best_first
from conformance.search.systematic.order import DrawOrder, Ledger
from conformance.search.systematic.page import write_page
from conformance.search.systematic.pool import suspects
from conformance.search.systematic.replay import Replay, replay_of
from conformance.search.systematic.shrink import SIMPLER
from conformance.search.systematic.stock import stock_universe
from conformance.search.systematic.sweep import FailingSpec, Suspects, Sweep, all_of
from conformance.search.systematic.universe import DrawableSpec, universe

LEDGER = "ledger.json"
SHRUNK_MAX = 20  #: kinds of failures that are shrunk; more of them are one defect seen from many sides
LOOK_SHARE = 0.5  #: of the time of a child process: for its bases without faults, at most
SHRINK_SHARE = 0.5  #: of the time besides: runs of a child process take real time
CONFIRM_S = 120.0  #: of the time besides, at least: for what virtual time has shown, in real time
CHOSEN_MAX = 20  #: specs of a list for a pipeline
QUICK_S = 12.0  #: what a run of such a list takes at most

JudgedCase = tuple[Case, list[Finding]]


class SweptClient(SearchClient):
    """A client to be swept."""

    @cached_property
    def child(self) -> Child | None:
        """How it is run in a process of its own; None of a client that is not."""
        if not self.is_process and not self.is_confirmed:
            return None
        return Child(self.protocol, self.traced, hears=self.is_confirmed)

    @property
    def tries(self) -> int:
        """Runs of one spec, at most, for a verdict."""
        return TRIES if self.is_process else 1

    def run(self, spec: Spec) -> Case:
        """Run one spec. Blocks."""
        if self.made is not None:
            return run(self.made, spec)
        assert self.child is not None
        return asyncio.run(self.child.run(spec))


class SweepCampaign(Campaign[SweptClient, Spec, JudgedCase]):
    """One sweep of one client.

    Args:
        seed: Of the order in which specs are drawn.
        again: Begin again from the start, not where the last sweep stopped.
        specs: Run these, instead of drawing any.
        processes: How many runs at once; 0: one of a client in this process, `SIDE_BY_SIDE` of others.
        meter: Measures what of the client is executed.

    Attributes:
        kinds: Of failures, so far.
        left: Specs that were not run, of all that there are; None as long as nobody knows.
    """

    kind = "sweep"
    simpler: ClassVar = SIMPLER

    def __init__(
        self,
        subject: SweptClient,
        folder: Path | None = None,
        *,
        expected: KnownFindings | None = None,
        seed: int = 0,
        again: bool = False,
        specs: Sequence[Spec] = (),
        processes: int = 0,
        meter: CoverageMeter | None = None,
    ) -> None:
        lanes = processes or (SIDE_BY_SIDE if subject.is_process else 1)
        super().__init__(subject, folder, expected, lanes)
        self.seed = seed
        self.again = again
        self.specs = specs
        self.clean: list[Spec] = []  #: of a child process: what has shown no news, and quickly
        self.kinds = 0
        self.left: int | None = None
        self.meter = meter
        if meter is not None and subject.is_process and subject.child is not None:
            subject.child.on_served = lambda spec, pid: meter.served(label_of(spec.base, spec.acts), pid)
        self._sweep = Sweep(subject.run if meter is None else partial(self._measured, meter), self.expected)
        self._order: DrawOrder | None = None
        self._on_run: Callable[[SweepCampaign], None] = lambda _: None

    def go(
        self,
        seconds: float,
        on_run: Callable[[SweepCampaign], None] = lambda _: None,
        on_shrink: OnShrink = lambda _, __: None,
    ) -> None:
        """Sweep for so long, then shrink what failed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._on_run = on_run
        run_all = self._live if self.subject.is_process else self._in_memory
        besides_s = seconds * SHRINK_SHARE
        if self.subject.is_confirmed:
            besides_s = max(besides_s, CONFIRM_S)
        self._search(partial(run_all, seconds), besides_s, on_shrink)

    def _in_memory(self, seconds: float) -> None:
        subject, end_s = self.subject, time.monotonic() + seconds
        if not self.specs:
            made = subject.made if subject.is_confirmed else None
            self._draw(universe(subject.protocol) if made is None else stock_universe(subject.protocol, made))
        chosen: Callable[[Iterable[Spec]], Suspects] = all_of
        if self.processes > 1:
            chosen = partial(suspects, subject.protocol, subject.name, subject.mutant, self.processes)
        if subject.is_confirmed:  # looking at its bases takes longer
            seconds = max(end_s - time.monotonic(), seconds * LOOK_SHARE)
        self._sweep.go(self._order or self.specs, seconds, on_run=lambda _: self._ran(), suspects=chosen)
        if self._sweep.needs_process and subject.child is not None:
            for run in subject.child.run_all(self._sweep.needs_process, seconds * LOOK_SHARE):
                self._sweep.keep(*run)

    def _measured(self, meter: CoverageMeter, spec: Spec) -> Case:
        """Run a spec, and count what it has executed that none had before."""
        label = label_of(spec.base, spec.acts)
        try:
            with meter.doing(label):
                return self.subject.run(spec)
        finally:
            meter.news(label)

    def _live(self, seconds: float) -> None:
        """First the bases without faults, which show what there is to disturb; then as many faults as fit."""
        child, end = self.subject.child, time.monotonic() + seconds
        assert child is not None
        child.lanes = self.processes
        if not self.specs:
            items = child.universe(seconds * LOOK_SHARE, self._take)
            self._draw(list(best_first(items)), by_name=True)
        for case, findings in child.run_all(self._order or self.specs, end - time.monotonic()):
            self._take(case, findings)

    def _draw(self, items: Sequence[DrawableSpec], *, by_name: bool = False) -> None:
        """Draw from these, but for what the last sweep has run."""
        path, size = self.folder / LEDGER, len(items)
        ledger = Ledger({}, size) if self.again else Ledger.load(path, size)
        self._order = DrawOrder(items, self.seed, ledger, by_name=by_name)
        self.left = self._order.left

    def _take(self, case: Case, findings: list[Finding]) -> None:
        """Keep what a run in real time has shown."""
        is_quick = bool(case.rows) and case.ended_s - case.rows[0].t < QUICK_S
        if is_quick and not self.expected.news(findings, case.spec):
            self.clean.append(case.spec)
        self._sweep.take(case, findings)
        self._ran()

    def _ran(self) -> None:
        """One more run has ended."""
        self.runs, self.kinds = self._sweep.runs, len(self._sweep.failures)
        if self._order is not None:
            self._order.ran()
            self.left = self._order.left
        self._on_run(self)

    # what failed

    def _save(self) -> None:
        if self._order is not None:
            self._order.ledger.save(self.folder / LEDGER)

    @property
    def _failed(self) -> list[tuple[str, FailingSpec]]:
        return [(name, failure) for (name, _), failure in self._sweep.failures.items()]

    def _failures(self) -> Sequence[tuple[Spec, str]]:
        every = self.subject.is_process or self.subject.is_confirmed
        some = self._failed if every else self._failed[:SHRUNK_MAX]
        return [(failure.spec, name) for name, failure in some]

    def _judged(self, plan: Spec) -> JudgedCase:
        case = self.subject.run(plan)
        return case, self.expected.news(judge(case), plan)

    async def _judged_live(self, plan: Spec) -> JudgedCase:
        assert self.subject.child is not None
        case, findings = await self.subject.child.judged(plan)
        return case, self.expected.news(findings, plan)

    def _replay(self, run: JudgedCase) -> Replay:
        return replay_of(self.subject.name, self.subject.mutant, *run)

    def _was_starved(self, number: int) -> bool:
        return self._failed[number][1].case.is_starved

    def _shows(self, run: JudgedCase, name: str) -> bool:
        return any(finding.name == name for finding in run[1])

    def _is_starved(self, run: JudgedCase) -> bool:
        return run[0].is_starved

    def _names(self, run: JudgedCase) -> list[str]:
        return [finding.name for finding in run[1]]

    def _detail(self, number: int, name: str) -> str:
        return next(one.text for one in self._failed[number][1].findings if one.name == name)

    def _write_down(self, found: Mapping[int, ShrinkResult[JudgedCase] | None]) -> None:
        for number, (name, failure) in enumerate(self._failed):
            if number in self.unconfirmed:
                continue
            smallest = found.get(number)
            steady: bool | None
            if smallest is not None:
                (case, findings), steady = smallest
            else:
                case, steady = failure.case, False if number in found else None
                findings = self.expected.news(judge(case), case.spec)
            findings = sorted(findings, key=lambda finding: finding.name != name)
            written = self._replay((case, findings))
            path = self.folder / written.name  # one for each invariant and smallest spec
            if name in written.found and all(one.path != path for one in self.failures):
                written.write(self.folder)
                write_page(case, findings, path)
                self.failures.append(WrittenFailure(written, path, steady, failure.count))

    def chosen(self) -> list[Spec]:
        """A list for `fixed`: what has shown no news, of each act the same number."""
        by_act: dict[str, deque[Spec]] = {}
        for spec in self.clean:
            by_act.setdefault(",".join(spec.acts), deque()).append(spec)
        found: list[Spec] = []
        while by_act and len(found) < CHOSEN_MAX:
            for act in list(by_act):
                found.append(by_act[act].popleft())
                if not by_act[act]:
                    del by_act[act]
        return found[:CHOSEN_MAX]

    def document(self) -> dict[str, Any]:
        """What ``fakebrokers sweep --json`` prints."""
        rows = [
            {
                "base": failure.replay.plan.base,
                "invariants": failure.names,
                "replay": str(failure.path),
                "faults": sum(1 for act in failure.replay.plan.acts if act != PLAIN),
                "steady": failure.steady,
                "count": failure.count,
            }
            for failure in self.failures
        ]
        found = {"runs": self.runs, "failed": rows, "seconds": round(self.seconds, 1), "left": self.left}
        if not self.subject.is_confirmed:
            return {**found, "unconfirmed": self.unconfirmed_rows} if self.unconfirmed else found
        return {
            **found,
            "unconfirmed": self.unconfirmed_rows,
            "needs_process": len(self._sweep.needs_process),
        }
