"""One conformance run of one client, from the selection to the report folder."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from rich.console import Console

from conformance.adapter.base import Adapter
from conformance.adapter.messages import Hello
from conformance.adapter.profile import missing_ops
from conformance.interrupts import interruptible
from conformance.results import Result, Results, summarize
from conformance.suite import expectations
from conformance.suite.bench import Bench
from conformance.suite.brokers import RealBroker, fake_for
from conformance.suite.console import RunProgress
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios, select
from conformance.suite.op_journal import open_run
from conformance.suite.present import to_result, without_password
from conformance.suite.runner import Runner
from conformance.suite.scenario import Key, Scenario
from conformance.suite.verdicts import judged
from fakebrokers import __version__
from fakebrokers.commands import ExitCode
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.journal import RunJournal
from fakebrokers.journal.run import ensure_writable

CUT_SHORT = "the run was cut short"
KEEP_EVERY_S = 3.0
TARGET_S = 5.0  #: for the first connection to a real broker


class Order(msgspec.Struct, kw_only=True):
    """What is to be run.

    Attributes:
        client: The name for reports; "" takes what the adapter says.
        who: The options that name the client on the command line.
        make_adapter: Makes an adapter for a protocol, not started.
        which: ``smoke``, ``gate``, ``full`` or ``soak``.
        target: URL of a real broker instead of the fake.
        journal: Folder in which every run is written down; None writes nothing.
        keep: Called with what is known so far, at the beginning and every few seconds: a run that is killed
            leaves that behind, marked as not complete.
        parallel: How many scenarios at once; None: as many as the machine carries.
    """

    client: str
    protocol: str
    make_adapter: Callable[[], Adapter]
    variant: str | None = None
    which: str = "gate"
    ids: tuple[str, ...] = ()
    target: str | None = None
    strict: bool = False
    expect: Path | None = None
    seed: int = 0
    journal: Path | None = None
    keep: Callable[[Results], None] | None = None
    parallel: int | None = None
    who: tuple[str, ...] = ()


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


class NothingExecuted(FakeBrokerError):
    """Nobody was judged: the run says nothing about the client."""


def conform(order: Order, console: Console) -> tuple[Results, list[Judgement]]:
    """Run it, with progress on a terminal.

    Raises:
        CutShort: Ctrl-C or SIGTERM; it has the results so far.
        JournalError: The folder of the journal cannot be written.
        NothingExecuted: There is no scenario to run, or nothing at the other end.
    """
    return _Run(order, console).work()


class _Run:
    """One run, from the selection to the results."""

    def __init__(self, order: Order, console: Console) -> None:
        self._order = order
        self._console = console
        self._known = expectations.load(order.expect) if order.expect else expectations.Expectations()
        self._started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self._begun = time.monotonic()
        self._hello: list[Hello] = []
        self._progress: list[RunProgress] = []
        self._ended: list[Judgement] = []
        self._chosen = 0
        self._kept = 0.0

    def work(self) -> tuple[Results, list[Judgement]]:
        """See `conform`."""
        if self._order.journal is not None:
            ensure_writable(self._order.journal)
        if self._order.target:
            _reach(self._order.target)
        self._keep()
        with interruptible() as told:
            try:
                chosen = self._choose()
                judgements = asyncio.run(self._make_runner().run(chosen))
            except KeyboardInterrupt:
                rows = [self._row(judgement) for judgement in self._ended]
                raise CutShort(self._results(rows, ended_by=told.exit_code), self._chosen) from None
            finally:
                for bar in self._progress:
                    bar.__exit__()
        return self._results([self._row(judgement) for judgement in judgements]), judgements

    def _choose(self) -> list[Scenario]:
        order = self._order
        chosen = select(
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
        self._chosen = len(chosen)
        self._progress.append(RunProgress(self._console, len(chosen)))
        self._progress[0].__enter__()
        return chosen

    def _make_runner(self) -> Runner:
        def end(judgement: Judgement) -> None:
            self._ended.append(judgement)
            self._progress[0].end(judgement)
            if time.monotonic() - self._kept > KEEP_EVERY_S:
                self._keep()

        def greeted(hello: Hello) -> None:
            self._known.check_client(self._order.expect, self._order.client, hello)
            self._hello.append(hello)

        bench = _NotedBench(self._order.make_adapter, greeted)
        return _runner(self._order, bench, self._hello, self._progress[0].begin, end, self._known.failures())

    def _keep(self) -> None:
        """What is known so far, without pictures: all that is left of the run if it is killed."""
        self._kept = time.monotonic()
        if self._order.keep is not None:
            rows = [_bare(judgement) for judgement in self._ended]
            self._order.keep(self._results(rows, ended_by=ExitCode.INCONCLUSIVE))

    def _row(self, judgement: Judgement) -> Result:
        about = self._hello[0] if self._hello else None
        order = self._order
        row = to_result(
            judgement, client=_name(order, about), seed=order.seed, who=order.who, target=order.target
        )
        return msgspec.structs.replace(row, criterion=judgement.criterion_id)

    def _results(self, rows: list[Result], ended_by: int | None = None) -> Results:
        """The results; `ended_by` is the exit code of a run that is not complete."""
        about = self._hello[0] if self._hello else None
        rows = expectations.apply(rows, self._known)
        lacking = bool(about and lacks(about))
        code, reasons = judged(rows, strict=self._order.strict, incomplete=lacking)
        return Results(
            client=_name(self._order, about),
            client_version=about.library_version if about else "",
            suite_version=__version__,
            seed=self._order.seed,
            started=self._started,
            seconds=round(time.monotonic() - self._begun, 2),
            results=tuple(rows),
            summary=summarize(rows),
            exit_code=int(code if ended_by is None else ended_by),
            complete=ended_by is None,
            reasons=tuple([*([CUT_SHORT] if ended_by is not None else []), *reasons]),
            target=without_password(self._order.target or ""),
            expected=self._order.expect.name if self._order.expect else "",
        )


def _bare(judgement: Judgement) -> Result:
    """A row without diagrams and journals."""
    item = judgement.scenario
    return Result(
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
    )


def _reach(target: str) -> None:
    """Raise `NothingExecuted` unless something listens there."""
    host, port = _place(target)
    try:
        socket.create_connection((host, port), timeout=TARGET_S).close()
    except OSError as error:
        raise NothingExecuted(f"nothing answers at {host}:{port} ({error}): start the broker first") from None


def _place(target: str) -> tuple[str, int]:
    url = urlsplit(target if "//" in target else f"//{target}")
    try:
        if url.hostname and url.port:
            return url.hostname, url.port
    except ValueError:
        pass  # a port that is none
    raise UsageError(f"expected --target like rabbitmq-stream://guest:guest@127.0.0.1:5552, got {target!r}")


def _name(order: Order, about: Hello | None) -> str:
    """The client's name: as ordered, else as its adapter says."""
    return order.client or (about.library if about else "") or "client"


def lacks(hello: Hello) -> list[str]:
    """Core ops of the declared roles that the adapter does not declare: then it is incomplete."""
    return sorted({op for protocol in hello.protocols for op in missing_ops(hello, protocol)})


class _NotedBench(Bench):
    """Tells what the client said about itself."""

    def __init__(self, make: Callable[[], Adapter], greeted: Callable[[Hello], None]) -> None:
        super().__init__(make)
        self._greeted = greeted

    async def hello(self) -> Hello:
        found = await super().hello()
        self._greeted(found)
        return found


def _runner(
    order: Order,
    bench: Bench,
    noted: list[Hello],
    begin: Callable[[Scenario], None],
    end: Callable[[Judgement], None],
    expected: set[Key],
) -> Runner:
    options: dict[str, Any] = {
        "parallel": order.parallel,
        "expected": expected,
        "on_begin": begin,
        "on_end": end,
    }
    if order.journal is not None:
        folder = order.journal

        def open_journal(item: Scenario) -> RunJournal:
            about = noted[0] if noted else None
            version = about.library_version if about else ""
            profile = str(item.server.get("profile", "real"))
            return open_run(
                folder,
                item,
                client=_name(order, about),
                client_version=version,
                seed=order.seed,
                profile=profile,
            )

        options["open_run"] = open_journal
    if order.target is None:
        return Runner(bench, fake_for(seed=order.seed), **options)
    host, port = _place(order.target)
    url = urlsplit(order.target if "//" in order.target else f"//{order.target}")
    login = {"user": unquote(url.username or ""), "password": unquote(url.password or "")}
    real = RealBroker(host, port, {})
    return Runner(
        bench,
        lambda _: real,
        endpoint=lambda broker: f"{broker.host}:{broker.port}",
        connect_options={key: value for key, value in login.items() if value},
        target=True,
        **{**options, "parallel": 1},  # the scenarios share their streams' names
    )
