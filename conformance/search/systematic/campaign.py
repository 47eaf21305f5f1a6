"""A sweep from its ledger to its replay files: run, shrink, run twice again, write down."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from conformance.known.defects import KnownFindings
from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.inprocess import run
from conformance.run.specs import PLAIN, Spec, to_json
from conformance.search.client import Command, SearchClient
from conformance.search.fixed import TRIES
from conformance.search.live import Shrinkable, shrink_all
from conformance.search.systematic.children import SIDE_BY_SIDE, Child, best_first
from conformance.search.systematic.order import DrawOrder, Ledger
from conformance.search.systematic.page import write_page
from conformance.search.systematic.replay import Replay, replay_of
from conformance.search.systematic.shrink import Shrinking, candidates
from conformance.search.systematic.sweep import FailingSpec, Sweep
from conformance.search.systematic.universe import universe

FOLDER = Path(".fakebrokers") / "sweep"
LEDGER = "ledger.json"
SHRUNK_MAX = 20  #: kinds of failures that are shrunk; more of them are one defect seen from many sides
LOOK_SHARE = 0.5  #: of the time of a child process: for its bases without faults, at most
SHRINK_SHARE = 0.5  #: of the time besides: runs of a child process take real time
CHOSEN_MAX = 20  #: specs of a list for a pipeline
QUICK_S = 12.0  #: what a run of such a list takes at most
AGAIN = 2  #: runs of what was found, before it is reported

Run = Callable[[Spec], Case]


class WrittenFailure(msgspec.Struct):
    """One kind of failure: its smallest spec, written down.

    Attributes:
        name: The invariant.
        steady: Whether two more runs have failed the same way.
        count: How many runs of the sweep have failed so.
    """

    name: str
    replay: Replay
    path: Path
    steady: bool
    count: int


class SweptClient(SearchClient):
    """A client to be swept.

    Attributes:
        child: How it is run in a process of its own, or None.
    """

    def __init__(self, protocol: str, name: str, mutant: str = "", command: Command | None = None) -> None:
        super().__init__(protocol, name, mutant, command)
        self.child = Child(protocol, self.traced) if self.is_process else None

    @property
    def tries(self) -> int:
        """Runs of one spec, at most, for a verdict."""
        return 1 if self.child is None else TRIES

    def run(self, spec: Spec) -> Case:
        """Run one spec. Blocks."""
        if self.made is not None:
            return run(self.made, spec)
        assert self.child is not None
        return asyncio.run(self.child.run(spec))


class SweepCampaign:
    """One sweep of one client.

    Args:
        folder: For the ledger and the replay files; by default one of this client below the working
            directory.
        expected: What it is known to violate.
        seed: Of the order in which specs are drawn.
        again: Begin anew instead of where the last sweep has stopped.
        specs: Run these, instead of drawing any.
        processes: How many runs at once; 0: one of a client in this process, `SIDE_BY_SIDE` of others.

    Attributes:
        runs: How many so far.
        kinds: Of failures, so far.
        left: Specs that were not run, of all that there are; None as long as nobody knows.
    """

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
    ) -> None:
        self.subject = subject
        self.processes = processes
        parts = (subject.name or "adapter", subject.protocol, subject.mutant)
        self.folder = folder or FOLDER / "-".join(part for part in parts if part)
        self.expected = expected or KnownFindings()
        self.seed = seed
        self.again = again
        self.specs = specs
        self.clean: list[Spec] = []  #: of a child process: what has shown no news, and quickly
        self.runs = 0
        self.kinds = 0
        self.left: int | None = None
        self.seconds = 0.0
        self.failures: list[WrittenFailure] = []
        self._on_run: Callable[[SweepCampaign], None] = lambda _: None

    def go(self, seconds: float, on_run: Callable[[SweepCampaign], None] = lambda _: None) -> None:
        """Sweep for so long, then shrink what failed.

        An interrupt (Ctrl-C) ends the runs; what they have found is written down all the same, as it is.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._on_run = on_run
        begun = time.monotonic()
        sweep = Sweep(self.subject.run, self.expected)
        try:
            if self.subject.made is not None:
                self._in_memory(sweep, seconds)
            else:
                asyncio.run(self._side_by_side(sweep, seconds))
        finally:
            self.runs = sweep.runs
            self.seconds = time.monotonic() - begun

    def _ran(self, sweep: Sweep, order: DrawOrder | None) -> None:
        """One more run has ended."""
        self.runs, self.kinds = sweep.runs, len(sweep.failures)
        if order is not None:
            order.ran()
            self.left = order.left
        self._on_run(self)

    def _in_memory(self, sweep: Sweep, seconds: float) -> None:
        order = None
        if not self.specs:
            items = universe(self.subject.protocol)
            order = DrawOrder(items, self.seed, self._ledger(len(items)))
            self.left = order.left
        interrupt: KeyboardInterrupt | None = None
        try:
            sweep.go(
                order or self.specs,
                seconds,
                on_run=lambda _: self._ran(sweep, order),
                **self._pool() if self.processes > 1 else {},
            )
        except KeyboardInterrupt as error:
            interrupt = error
        if order is not None:
            order.ledger.save(self.folder / LEDGER)
        for number, ((name, _), failure) in enumerate(sweep.failures.items()):
            smallest = failure.spec
            if number < SHRUNK_MAX and interrupt is None:
                search = Shrinking(lambda one, name=name: name in self._names(self.subject.run(one)))  # type: ignore[misc]
                smallest = search.smallest(failure.spec)
            again = [self.subject.run(smallest) for _ in range(AGAIN)]
            shown = [case for case in again if name in self._names(case)]
            self._write_down(name, failure, (shown or [failure.case])[0], steady=len(shown) == AGAIN)
        if interrupt is not None:
            raise interrupt

    def _pool(self) -> dict[str, Any]:
        from conformance.search.systematic.pool import suspects

        return {"suspects": partial(suspects, self.subject.protocol, self.subject.mutant, self.processes)}

    async def _side_by_side(self, sweep: Sweep, seconds: float) -> None:
        """First the bases without faults, which show what there is to disturb; then as many faults as fit."""
        child = self.subject.child
        assert child is not None

        def take(case: Case, findings: list[Finding]) -> list[Finding]:
            is_quick = bool(case.rows) and case.ended_s - case.rows[0].t < QUICK_S
            if is_quick and not self.expected.news(findings, case.spec):
                self.clean.append(case.spec)
            news = sweep.take(case, findings)
            self._ran(sweep, order)
            return news

        begun = time.monotonic()
        child.lanes = self.processes or SIDE_BY_SIDE
        order: DrawOrder | None = None
        try:
            if self.specs:
                await child.run_all(self.specs, seconds, take)
            else:
                items = await child.universe(seconds * LOOK_SHARE, take)
                order = DrawOrder(best_first(items), self.seed, self._ledger(len(items)), by_name=True)
                self.left = order.left
                await child.run_all(order, seconds - (time.monotonic() - begun), take)
        except asyncio.CancelledError:  # Ctrl-C
            self._keep_as_found(sweep)
            raise
        finally:
            if order is not None:
                order.ledger.save(self.folder / LEDGER)
        await self._shrink_live(sweep, seconds * SHRINK_SHARE)

    def _keep_as_found(self, sweep: Sweep) -> None:
        """Write down what failed as it was: there is no time to shrink it."""
        for (name, _), failure in sweep.failures.items():
            self._write_down(name, failure, failure.case)

    async def _shrink_live(self, sweep: Sweep, seconds: float) -> None:
        """Shrink what a child process has failed at, all of it side by side, and write it down."""
        child = self.subject.child
        assert child is not None
        failures = [(name, failure) for (name, _), failure in sweep.failures.items()]
        plans = Shrinkable(child.run, lambda case, name: name in self._names(case), candidates, to_json)
        wishes = [(failure.spec, name) for name, failure in failures]
        try:
            found = await shrink_all(wishes, plans, child.lanes, seconds)
        except asyncio.CancelledError:  # Ctrl-C
            self._keep_as_found(sweep)
            raise
        for (name, failure), smallest in zip(failures, found, strict=True):
            if smallest is None:
                self._write_down(name, failure, failure.case)
            else:
                self._write_down(name, failure, smallest.run, steady=smallest.steady)

    def _ledger(self, size: int) -> Ledger:
        return Ledger({}, size) if self.again else Ledger.load(self.folder / LEDGER, size)

    def _news(self, case: Case) -> list[Finding]:
        return self.expected.news(judge(case), case.spec)

    def _names(self, case: Case) -> set[str]:
        return {finding.name for finding in self._news(case)}

    def _write_down(self, name: str, failure: FailingSpec, case: Case, *, steady: bool = False) -> None:
        """One file for each invariant and smallest spec; `case` is a run of that."""
        findings = sorted(self._news(case), key=lambda finding: finding.name != name)
        if name not in self._names(case):
            return  # a plain run has reported that it is no news
        written = replay_of(self.subject.name, self.subject.mutant, case, findings)
        if any(to_json(other.replay.spec) == to_json(case.spec) and other.name == name
               for other in self.failures):  # fmt: skip
            return
        path = written.write(self.folder)
        write_page(case, findings, path)
        self.failures.append(WrittenFailure(name, written, path, steady, failure.count))

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
                "base": failure.replay.spec.base,
                "invariants": list(failure.replay.invariants),
                "replay": str(failure.path),
                "faults": sum(1 for act in failure.replay.spec.acts if act != PLAIN),
                "steady": failure.steady,
                "count": failure.count,
            }
            for failure in self.failures
        ]
        return {"runs": self.runs, "failed": rows, "seconds": round(self.seconds, 1), "left": self.left}
