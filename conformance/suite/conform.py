"""One conformance run of one client, from the selection to the report folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from rich.console import Console

from conformance import results as result_files
from conformance.adapter.base import Adapter
from conformance.adapter.messages import Hello
from conformance.adapter.profile import ROLE_OPS
from conformance.results import Results, summarize
from conformance.suite import expectations
from conformance.suite.bench import Bench
from conformance.suite.brokers import RealBroker, fake_for
from conformance.suite.console import RunProgress
from conformance.suite.judge import Judgement
from conformance.suite.junit import junit
from conformance.suite.load import select
from conformance.suite.notebook import open_run
from conformance.suite.plugin import SuitePlugin, run_session
from conformance.suite.present import to_result
from conformance.suite.runner import Runner
from conformance.suite.scenario import Key, Scenario
from conformance.suite.verdicts import exit_code
from fakebrokers import __version__
from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal
from fakebrokers.journal.run import ensure_writable


class Order(msgspec.Struct, kw_only=True):
    """What is to be run.

    Attributes:
        client: The name for reports; "" takes what the adapter says.
        who: The options that name the client on the command line.
        make_adapter: Makes an adapter for a protocol, not started.
        which: ``smoke``, ``gate``, ``full`` or ``soak``.
        target: URL of a real broker instead of the fake.
        journal: Folder in which every run is written down; None writes nothing.
        parallel: How many scenarios at once.
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
    parallel: int = 6
    who: tuple[str, ...] = ()


class CutShort(KeyboardInterrupt):
    """Ctrl-C in the middle of a run.

    Attributes:
        results: Of the scenarios that had ended by then.
    """

    def __init__(self, results: Results) -> None:
        super().__init__(f"cut short after {len(results.results)} scenarios")
        self.results = results


def conform(order: Order, console: Console) -> tuple[Results, list[Judgement]]:
    """Run it, with progress on a terminal.

    Raises:
        CutShort: Ctrl-C; it has the results so far.
        JournalError: The folder of the journal cannot be written.
    """
    if order.journal is not None:
        ensure_writable(order.journal)
    started = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    known = expectations.load(order.expect) if order.expect else expectations.Expectations()
    hello: list[Hello] = []
    progress: list[RunProgress] = []
    ended: list[Judgement] = []

    def choose(items: list[Scenario]) -> list[Scenario]:
        chosen = select(
            items, protocol=order.protocol, variant=order.variant, which=order.which, ids=order.ids
        )
        if order.target:
            chosen = [s for s in chosen if s.target]
        progress.append(RunProgress(console, len(chosen)))
        progress[0].__enter__()
        return chosen

    def make_runner() -> Runner:
        return _runner(order, progress[0], hello, known.failures(), ended)

    begun, cut_short = time.monotonic(), False
    try:
        judgements = run_session(SuitePlugin(choose, make_runner))
    except KeyboardInterrupt:
        judgements, cut_short = ended, True
    finally:
        for bar in progress:
            bar.__exit__()
    about = hello[0] if hello else None
    client = _name(order, about)
    rows = [
        to_result(j, client=client, seed=order.seed, who=order.who, target=order.target) for j in judgements
    ]
    rows = expectations.apply(rows, known)
    found = Results(
        client=client,
        client_version=about.library_version if about else "",
        suite_version=__version__,
        seed=order.seed,
        started=started,
        seconds=round(time.monotonic() - begun, 2),
        results=tuple(rows),
        summary=summarize(rows),
        exit_code=int(exit_code(rows, strict=order.strict, incomplete=bool(about and lacks(about)))),
    )
    if cut_short:
        raise CutShort(found)
    return found, judgements


def _name(order: Order, about: Hello | None) -> str:
    """The client's name: as ordered, else as its adapter says."""
    return order.client or (about.library if about else "") or "client"


def lacks(hello: Hello) -> list[str]:
    """Core ops of the declared roles that the adapter does not declare: then it is incomplete."""
    missing = []
    for protocol in hello.protocols:
        for role, ops in ROLE_OPS.get(protocol, {}).items():
            if role in hello.roles:
                missing += [op for op in ops if op not in hello.ops]
    return sorted(set(missing))


class _NotedBench(Bench):
    """Remembers what the client said about itself."""

    def __init__(self, make: Callable[[], Adapter], noted: list[Hello]) -> None:
        super().__init__(make)
        self._noted = noted

    async def hello(self) -> Hello:
        found = await super().hello()
        self._noted.append(found)
        return found


def _runner(
    order: Order, progress: RunProgress, noted: list[Hello], expected: set[Key], ended: list[Judgement]
) -> Runner:
    bench = _NotedBench(order.make_adapter, noted)

    def end(judgement: Judgement) -> None:
        ended.append(judgement)
        progress.end(judgement)

    options: dict[str, Any] = {
        "parallel": order.parallel,
        "expected": expected,
        "on_begin": progress.begin,
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
    url = urlsplit(order.target if "//" in order.target else f"//{order.target}")
    if not url.hostname or not url.port:
        raise UsageError(
            f"expected --target like rabbitmq-stream://guest:guest@127.0.0.1:5552, got {order.target!r}"
        )
    login = {"user": unquote(url.username or ""), "password": unquote(url.password or "")}
    real = RealBroker(url.hostname, url.port, {})
    return Runner(
        bench,
        lambda _: real,
        endpoint=lambda broker: f"{broker.host}:{broker.port}",
        connect_options={key: value for key, value in login.items() if value},
        target=True,
        **{**options, "parallel": 1},  # the scenarios share their streams' names
    )


def write_folder(results: Results, folder: Path) -> None:
    """Write ``results.json``, ``junit.xml`` and ``allure-results``; each file appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / "results.json", result_files.dump(results))
    _put(folder / "junit.xml", junit(results))
    for row in results.results:
        if row.reproducer:
            place = folder / "reproducers" / result_files.reproducer_name(row)
            place.parent.mkdir(exist_ok=True)
            _put(place, row.reproducer.encode())
    try:
        from conformance.suite.allure import write_allure

        write_allure(results, folder / "allure-results")
    except ModuleNotFoundError:
        pass  # the extra is not installed; `fakebrokers doctor` says so


def write_pages(results: Results, folder: Path) -> None:
    """Write ``index.html`` and turn the journal into Parquet, where the extra ``suite`` is installed."""
    from conformance.report import write_report
    from fakebrokers.journal.seal import seal

    if (folder / "journal").exists():
        seal(folder / "journal")
    write_report(folder, [results])


def _put(path: Path, data: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)
