"""What a person sees of a run: progress while it lasts, failures in full, a summary."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from conformance.results import Result, Results, Verdict
from conformance.suite.judge import Judgement
from conformance.suite.scenario import Scenario
from conformance.suite.verdicts import executed_share

STYLES = {
    Verdict.PASS: "green",
    Verdict.NON_STRICT: "yellow",
    Verdict.FAIL: "bold red",
    Verdict.UNSUPPORTED: "dim",
    Verdict.PROFILE: "dim",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.HARNESS_ERROR: "bold magenta",
}


class RunProgress:
    """A bar on a terminal; nothing anywhere else. Use it as a context manager."""

    def __init__(self, console: Console, total: int) -> None:
        self._running: dict[str, None] = {}
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[running]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("scenarios", total=total, running="")

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, item: Scenario) -> None:
        """A scenario starts."""
        self._running[item.label] = None
        self._show()

    def end(self, judgement: Judgement) -> None:
        """A scenario has its verdict."""
        self._running.pop(judgement.scenario.label, None)
        self._bar.advance(self._task)
        self._show()

    def _show(self) -> None:
        shown = list(self._running)[:3]
        more = len(self._running) - len(shown)
        self._bar.update(self._task, running=" ".join(shown) + (f" +{more}" if more else ""))


def print_failure(console: Console, row: Result) -> None:
    """One failure: requirement, acceptable outcomes, what happened, the frames around it."""
    style = STYLES[row.verdict]
    tags = f" ({', '.join(row.tags)})" if row.tags else ""
    where = "/".join(part for part in (row.protocol, row.variant) if part)
    console.print(
        f"\n[{style}]{row.verdict.value.upper()}{escape(tags)}[/] [bold]{escape(row.id)}[/] "
        f"{escape(row.title)} [dim]{row.level} · {escape(where)} · {row.seconds:.1f} s[/]"
    )
    for source in row.sources:
        console.print(f"  source      {source}", markup=False, highlight=False)
    console.print("  acceptable", markup=False)
    for outcome in row.acceptable:
        console.print(f"              - {outcome}", markup=False, highlight=False)
    console.print(f"  actual      {row.reason}", markup=False, highlight=False, style=style)
    for line in row.journal[-14:]:
        marked = "[fault" in line
        console.print(
            f"    {line}",
            markup=False,
            highlight=False,
            style="yellow" if marked else "dim",
            overflow="ellipsis",
            no_wrap=True,
        )
    console.print(f"  again       {row.replay}", markup=False, highlight=False)


def print_results(console: Console, results: Results) -> None:
    """Failures in full, then a table of verdicts by level."""
    for row in results.results:
        loud = row.verdict in (Verdict.FAIL, Verdict.HARNESS_ERROR) and "expected" not in row.tags
        if loud:
            print_failure(console, row)
    for row in results.results:
        if row.verdict is Verdict.INCONCLUSIVE:
            console.print(f"inconclusive {row.id} ({row.level}): {row.reason}", markup=False, style="magenta")
        if "unexpected pass" in row.tags:
            console.print(f"unexpected pass {row.id}: take it out of the expectation file", markup=False)
    table = Table(pad_edge=False)
    table.add_column("level")
    verdicts = [v for v in Verdict if any(r.verdict is v for r in results.results)]
    for verdict in verdicts:
        table.add_column(verdict.value, justify="right", style=STYLES[verdict])
    for level in ("MUST", "SHOULD", "MAY"):
        rows = [r for r in results.results if r.level == level]
        if rows:
            table.add_row(level, *(_count(rows, v) for v in verdicts))
    console.print(f"\n{results.client} {results.client_version}", markup=False, style="bold")
    console.print(table)
    count = len(results.results)
    console.print(
        f"{executed_share(results.results):.0%} of the MUST scenarios for this client were executed; "
        f"{count} scenario{'s' * (count != 1)} in {results.seconds:.1f} s; seed {results.seed}; "
        f"exit code {results.exit_code}",
        highlight=False,
    )


def _count(rows: list[Result], verdict: Verdict) -> str:
    found = [r for r in rows if r.verdict is verdict]
    known = sum("expected" in r.tags for r in found)
    return f"{len(found)} ({known} known)" if known else str(len(found) or "")
