"""Conformance runs, of one client or of several side by side: from the selection to the results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import UTC, datetime
from threading import current_thread, main_thread
from typing import Any

import msgspec
from rich.console import Console

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.messages import Hello
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.adapter.profile import missing_ops
from conformance.coverage.meter import row
from conformance.known.defects import KnownDefects, Part
from conformance.known.files import load
from conformance.results import Results, RowResult, RuleResult, summarize
from conformance.suite import expectations
from conformance.suite.console import RunProgress
from conformance.suite.here import HereJudge
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios, select
from conformance.suite.order import (
    NothingExecuted,
    RecordingPool,
    SuiteRequest,
    journals_for,
    name_of,
    reach,
    runner_for,
)
from conformance.suite.present import to_result, without_password
from conformance.suite.rule_results import joined, rule_results
from conformance.suite.runner import Runner, run_together
from conformance.suite.scenario import Key, Scenario
from conformance.suite.verdicts import judged
from fakebrokers import __version__
from fakebrokers.commands import ExitCode
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.interrupts import Interrupts, interruptible
from fakebrokers.journal.run import ensure_writable

__all__ = ["CutShort", "NothingExecuted", "SuiteRequest", "conform", "conform_all"]

CUT_SHORT = "the run was cut short"
REAL_TIME = "real-time"  #: the tag of a row that a process has decided, of a client that can run in this one
KEEP_EVERY_S = 3.0


class CutShort(KeyboardInterrupt):
    """Ctrl-C or SIGTERM in the middle of a run.

    Attributes:
        results: Of the scenarios that had ended by then.
        chosen: How many there were to run.
    """

    def __init__(self, results: Results, chosen: int) -> None:
        super().__init__(f"cut short after {len(results.results)} of {chosen} scenarios")
        self.results = results
        self.chosen = chosen


def conform(order: SuiteRequest, console: Console) -> Results:
    """Run it, with progress on a terminal.

    Raises:
        CutShort: Ctrl-C or SIGTERM; it has the results so far.
        JournalError: The folder of the journal cannot be written.
        NothingExecuted: There is no scenario to run, or nothing at the other end.
    """
    run = _Run(order)
    with interruptible() as interrupts:
        try:
            _judge([run], console, order.parallel)
        except KeyboardInterrupt:
            raise CutShort(run.results(interrupts.exit_code), len(run.chosen)) from None
    if run.runner.refused is not None:
        raise run.runner.refused
    return run.results()


def conform_all(
    orders: Sequence[SuiteRequest],
    console: Console,
    interrupts: Interrupts,
    *,
    parallel: int | None,
    on_done: Callable[[SuiteRequest, Results], None],
    on_refused: Callable[[SuiteRequest, FakeBrokerError], None],
) -> None:
    """Judge several clients side by side, within one limit.

    Args:
        interrupts: What ends the command.
        parallel: How many scenarios at once, of all clients.
        on_done: Gets the results of each client as soon as they are complete; when all is cut short, also
            what there is of the others. On a thread of its own.
        on_refused: Gets each client that cannot be judged, and why.

    Raises:
        KeyboardInterrupt: Ctrl-C or SIGTERM.
    """
    runs = []
    for order in orders:
        try:
            runs.append(_Run(order))
        except FakeBrokerError as error:
            on_refused(order, error)
    try:
        _judge(runs, console, parallel, lambda run: on_done(run.order, run.results()))
    except KeyboardInterrupt:
        for run in runs:
            if run.has_begun and not run.is_done:
                on_done(run.order, run.results(interrupts.exit_code))
        raise
    for run in runs:
        if run.runner.refused is not None:
            on_refused(run.order, run.runner.refused)


def _judge(
    runs: Sequence[_Run],
    console: Console,
    parallel: int | None,
    on_done: Callable[[_Run], None] = lambda _: None,
) -> None:
    """Run them all; what they have to say of each scenario is made beside, on one thread."""
    total = sum(len(run.chosen) for run in runs)
    with RunProgress(console, total) as progress, ThreadPoolExecutor(1) as beside:
        by_runner = {run.open(progress, beside, is_named=len(runs) > 1): run for run in runs}
        reports: list[Future[None]] = []

        def done(runner: Runner) -> None:
            if runner.refused is None:
                by_runner[runner].is_done = True
                reports.append(beside.submit(on_done, by_runner[runner]))

        work = {}
        for runner, run in by_runner.items():
            run.judge_here(console, is_named=len(runs) > 1)
            if runner.refused is not None:
                continue
            if run.open_items:
                work[runner] = run.open_items
            else:
                done(runner)
        asyncio.run(run_together(work, parallel, done))
        for each in reports:
            each.result()


class _Run:
    """One client, from the selection to the results.

    Attributes:
        chosen: The scenarios.
        is_done: Whether all of them have ended.
    """

    runner: Runner

    def __init__(self, order: SuiteRequest) -> None:
        self.order = order
        self._known = load(order.expect, Part.SUITE) if order.expect else KnownDefects()
        self._started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._begun_s = self._ended_s = 0.0
        self._hello: list[Hello] = []
        self._bare: list[RowResult] = []
        self._rows: dict[Key, Future[RowResult]] = {}
        self._rules: dict[Key, list[RuleResult]] = {}
        self._kept_s = 0.0
        self._needs_process: Mapping[Key, str] = {}
        self._is_here = False  #: whether scenarios are judged in this process now
        self.chosen: list[Scenario] = []
        self.is_done = False
        if order.journal is not None:
            ensure_writable(order.journal)
        if order.target:
            reach(order.target)
        self._keep()
        self.chosen = self._choose()

    @property
    def has_begun(self) -> bool:
        """Whether the client has been started."""
        return bool(self._hello)

    def _choose(self) -> list[Scenario]:
        order = self.order
        chosen = list(order.rows) or select(
            all_scenarios(),
            protocol=order.protocol,
            variant=order.variant,
            which=order.which,
            ids=order.ids,
        )
        if order.target:
            chosen = [s for s in chosen if s.target]
        if not chosen:
            where = " against a real broker" if order.target else ""
            raise NothingExecuted(
                f"there is no scenario to run{where}: `fakebrokers list` shows what there is"
            )
        return chosen

    def open(self, progress: RunProgress, beside: Executor, *, is_named: bool) -> Runner:
        """The runner.

        Args:
            beside: Where rows of results are made.
            is_named: Whether progress says whose scenario it is.
        """
        who = self.order.client if is_named else ""

        def begin(item: Scenario) -> None:
            self._begun_s = self._begun_s or time.monotonic()
            progress.begin(item, who)

        def end(judgement: Judgement) -> None:
            self._ended_s = time.monotonic()
            self._begun_s = self._begun_s or self._ended_s  # what is skipped never begins
            why = self._needs_process.get(judgement.scenario.key)
            if why is not None:
                how = f"in a process, in real time: {why}"
                judgement = msgspec.structs.replace(judgement, how=how, tags=(*judgement.tags, REAL_TIME))
            self._bare.append(_bare(judgement))
            self._rules[judgement.scenario.key] = rule_results(judgement)
            if self._is_here:  # a thread beside would run on the virtual time of this one
                done: Future[RowResult] = Future()
                self._rows[judgement.scenario.key] = done
                done.set_result(self._row(judgement))
            else:
                self._rows[judgement.scenario.key] = beside.submit(self._row, judgement)
            progress.end(judgement, who)
            if time.monotonic() - self._kept_s > KEEP_EVERY_S:
                self._keep()

        def greeted(hello: Hello) -> None:
            self._known.check_client(self.order.expect, self.order.client, hello)
            self._hello.append(hello)

        pool = RecordingPool(self.order.make_adapter, greeted)
        options: dict[str, Any] = {
            "known": self.order.foreseen or self._known,
            "on_served": self._count,
            "on_begin": begin,
            "on_again": lambda item: progress.again(item, who),
            "on_end": end,
        }
        self.runner = runner_for(self.order, pool, self._hello, options)
        return self.runner

    def _count(self, item: Scenario, adapter: Adapter) -> None:
        """What the process has executed was executed by this row."""
        if self.order.meter is not None and isinstance(adapter, ProcessAdapter) and adapter.pid is not None:
            self.order.meter.served(row(item.id), adapter.pid)

    @property
    def open_items(self) -> list[Scenario]:
        """The scenarios that have not ended."""
        return [item for item in self.chosen if item.key not in self._rows]

    def judge_here(self, console: Console, *, is_named: bool) -> None:
        """Judge a client on virtual time that can run in this process; what is left is for processes.

        Args:
            is_named: Whether what is said of it begins with its name.
        """
        order = self.order
        if order.here is None or order.target or current_thread() is not main_thread():
            return
        judge = HereJudge(order.here, order.seed, self._known, order.meter)
        hello = judge.hello(order.protocol)
        try:
            self._known.check_client(order.expect, order.client, hello)
        except UsageError as error:
            self.runner.refused = error
            return
        self._hello.append(hello)
        begun_s = time.monotonic()
        self._is_here = True
        for judgement in judge.judged(self.chosen, journals_for(order, self._hello)):
            self.runner.take(judgement)
        self._is_here = False
        self._needs_process = judge.left
        seconds = time.monotonic() - begun_s
        who = f"{order.client}: " if is_named else ""
        console.print(
            f"{who}{len(self._rows)} of {len(self.chosen)} rows on virtual time in {seconds:.0f} s; "
            f"{len(judge.left)} need a process, in real time",
            highlight=False,
        )
        for (name, _, _), why in judge.left.items():
            console.print(f"    {name}: {why}", markup=False, highlight=False)

    def _keep(self) -> None:
        """What is known so far, without pictures: all that is left of the run if it is killed."""
        self._kept_s = time.monotonic()
        if self.order.keep is not None:
            self.order.keep(self._results(self._bare, ended_by=ExitCode.INCONCLUSIVE))

    def _row(self, judgement: Judgement) -> RowResult:
        about = self._hello[0] if self._hello else None
        order = self.order
        row = to_result(
            judgement, client=name_of(order, about), seed=order.seed, who=order.who, target=order.target
        )
        return msgspec.structs.replace(row, criterion=judgement.criterion_id)

    def results(self, ended_by: int | None = None) -> Results:
        """The results, in the order of the catalogue; `ended_by` is the exit code of a run that is not
        complete."""
        rows = [self._rows[item.key].result() for item in self.chosen if item.key in self._rows]
        return self._results(rows, ended_by)

    def _results(self, rows: list[RowResult], ended_by: int | None) -> Results:
        about = self._hello[0] if self._hello else None
        rows = expectations.apply(rows, self._known)
        found = joined(each for item in self.chosen for each in self._rules.get(item.key, ()))
        rules = expectations.apply_rules(found, self._known, rows)
        lacking = bool(about and lacks(about))
        code, reasons = judged(rows, rules, strict=self.order.strict, incomplete=lacking)
        return Results(
            client=name_of(self.order, about),
            client_version=about.library_version if about else "",
            suite_version=__version__,
            seed=self.order.seed,
            started=self._started,
            seconds=round(self._ended_s - self._begun_s, 2),
            results=tuple(rows),
            summary=summarize(rows),
            exit_code=int(code if ended_by is None else ended_by),
            complete=ended_by is None,
            reasons=tuple([*([CUT_SHORT] if ended_by is not None else []), *reasons]),
            target=without_password(self.order.target or ""),
            expected=self.order.expect.name if self.order.expect else "",
            rules=tuple(rules),
        )


def _bare(judgement: Judgement) -> RowResult:
    """A row without diagrams and journals."""
    item = judgement.scenario
    return RowResult(
        item.id,
        item.protocol,
        item.variant,
        item.requirement.level,
        judgement.verdict,
        title=item.requirement.title,
        criterion=judgement.criterion_id,
        tags=judgement.tags,
        seconds=round(judgement.seconds, 3),
        reason=judgement.reason,
        revision=item.revision,
        how=judgement.how,
    )


def lacks(hello: Hello) -> list[str]:
    """Core ops of the declared roles that the adapter does not declare: then it is incomplete."""
    return sorted({op for protocol in hello.protocols for op in missing_ops(hello, protocol)})
