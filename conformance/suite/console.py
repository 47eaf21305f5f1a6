"""What a person sees of a run: progress while it lasts, failures in full, a summary."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from conformance.printing import plain
from conformance.results import Results, RowResult, RuleResult, Step, Verdict, alike
from conformance.suite.evidence import brief
from conformance.suite.expectations import causes
from conformance.suite.judge import Judgement
from conformance.suite.scenario import Key, Scenario
from conformance.suite.verdicts import executed_share

PERIOD_S = 5.0  #: between two lines of progress where there is no terminal
STORY_LINES = 12
IN_A_LINE = 1  #: lines of stderr that the line of an inconclusive row has
DIAGRAM_LINES = 14
RULE_ROWS = 12  #: ids that are printed of the rows that violate a rule

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
    """A bar on a terminal, elsewhere a line every few seconds. Use it as a context manager.

    Args:
        period_s: Between two lines.
    """

    def __init__(self, console: Console, total: int, *, period_s: float = PERIOD_S) -> None:
        self._console = console
        self._total = total
        self._period_s = period_s
        self._begun_at = time.monotonic()
        self._running: dict[tuple[str, Key], tuple[str, float]] = {}
        self._counts: Counter[Verdict] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report, name="progress", daemon=True)
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
        if not self._console.is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._bar.stop()

    def begin(self, item: Scenario, client: str = "") -> None:
        """A scenario starts; `client` is its name, where there are several."""
        label = f"{client} {item.label}".lstrip()
        self._running[client, item.key] = (label, time.monotonic())  # variants share a label
        self._show()

    def again(self, item: Scenario, client: str = "") -> None:
        """A scenario will start once more, later."""
        self._running.pop((client, item.key), None)
        self._show()

    def end(self, judgement: Judgement, client: str = "") -> None:
        """A scenario has its verdict."""
        self._running.pop((client, judgement.scenario.key), None)
        self._counts[judgement.verdict] += 1
        self._bar.advance(self._task)
        self._show()

    def line(self) -> str:
        """Where the run is: how many are done, with which verdicts, and what has been running longest."""
        now = time.monotonic()
        counts = self._counts.copy()
        verdicts = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        longest = sorted(self._running.copy().values(), key=lambda each: each[1])[:3]
        running = ", ".join(f"{label} ({now - begun:.0f} s)" for label, begun in longest)
        parts = [f"{now - self._begun_at:4.0f} s  {counts.total()} of {self._total}"]
        return "; ".join(parts + [verdicts] * bool(verdicts) + [f"running {running}"] * bool(running))

    def _report(self) -> None:
        while not self._ended.wait(self._period_s):
            self._console.print(self.line(), markup=False, highlight=False, soft_wrap=True)

    def _show(self) -> None:
        shown = [label for label, _ in self._running.values()][:3]
        more = len(self._running) - len(shown)
        self._bar.update(self._task, running=" ".join(shown) + (f" +{more}" if more else ""))


def print_failure(console: Console, row: RowResult) -> None:
    """One failure: the adapter's own trouble, what is required and was done, what came of it, the frames."""
    style = STYLES[row.verdict]
    tags = f" ({', '.join(row.tags)})" if row.tags else ""
    where = "/".join(part for part in (row.protocol, row.variant) if part)
    console.print(
        f"\n[{style}]{row.verdict.value.upper()}{escape(tags)}[/] [bold]{escape(row.id)}[/] "
        f"{escape(row.title)} [dim]{row.level} · {escape(where)} · {row.seconds:.1f} s[/]",
        soft_wrap=True,
    )
    for text in brief(row.adapter):
        _say(console, "adapter", text, style=style)
    for text in row.sources:
        _say(console, "source", text)
    for part in row.requirement.split(";"):
        mark, is_marked, outcome = part.strip().partition(":")
        name = {"fail": "not", "non-strict": "tolerated"}.get(mark.lower()) if is_marked else None
        _say(console, name or "required", outcome.strip() if name else part.strip())
    if row.fault:
        _say(console, "done to it", row.fault)
    _say(console, "actual", row.reason, style=style)
    if row.story:
        _say(console, "in order", f"(seconds, who, what; {len(row.story)} steps)")
    for line in shortened(row.story, STORY_LINES):
        console.print(f"    {plain(line)}", markup=False, style="dim", overflow="ellipsis", no_wrap=True)
    steps = around(row.diagram, DIAGRAM_LINES)
    if steps:
        _say(
            console,
            "on the wire",
            f"({len(steps)} of {len(row.diagram)} steps: around the last faults, and the end)",
        )
    for step in steps:
        _print_step(console, step)
    if row.how:
        _say(console, "judged", row.how)
    _say(console, "again", row.replay)


def print_rule(console: Console, rule: RuleResult) -> None:
    """One violated rule: in how many rows, what happened, and what the rule demands."""
    where = "/".join(part for part in (rule.protocol, rule.variant) if part)
    style = STYLES[rule.verdict]
    rows = _many(len(rule.rows), "row")
    console.print(
        f"\n[{style}]{rule.verdict.value.upper()}[/] rule [bold]{escape(rule.rule)}[/] "
        f"[dim]{rule.level} · {escape(where)}[/] {rows}: {escape(plain(rule.reason))}",
        soft_wrap=True,
    )
    _say(console, "required", rule.about)
    _say(console, "rows", in_short(rule.rows))
    _say(console, "why", f"fakebrokers explain {rule.rule}")


def in_short(ids: Sequence[str]) -> str:
    """The first of many ids, and how many more there are."""
    more = len(ids) - RULE_ROWS
    return " ".join(ids[:RULE_ROWS]) + (f" and {more} more" if more > 0 else "")


def _say(console: Console, what: str, text: str, style: str = "") -> None:
    """A line of the block. Long ones are left to the terminal, so that they can be copied."""
    console.print(f"  {what:<11} {plain(text)}", markup=False, highlight=False, style=style, soft_wrap=True)


def shortened(lines: Sequence[str], limit: int) -> list[str]:
    """The first and the last of many lines, and how many were left out."""
    if len(lines) <= limit:
        return list(lines)
    half = limit // 2
    left_out = f"{'':8}  ({len(lines) - 2 * half} steps left out)"
    return [*lines[:half], left_out, *lines[-half:]]


def around(steps: Sequence[Step], limit: int) -> list[Step]:
    """Of a diagram: what faults touched, what came before and after it, and the end."""
    marked = [number for number, step in enumerate(steps) if step.fault]
    near = {n for at in marked[-2:] for n in range(at - 2, at + 3) if 0 <= n < len(steps)}
    last = range(max(0, len(steps) - limit + len(near)), len(steps))
    return [steps[n] for n in sorted(near | set(last))]


def _print_step(console: Console, step: Step) -> None:
    arrow = {"in": "client ──▶ fake", "out": "client ◀── fake"}.get(step.dir, "       │       ")
    if step.lost:
        arrow = {"in": "client ──✗  fake", "out": "client  ✗── fake"}[step.dir]
    fault = f"  ⚡ {step.fault}" if step.fault else ""
    label = plain(" ".join(part for part in (step.kind, step.label) if part))
    console.print(
        f"    {step.t:8.3f}  {step.connection:>4}  {arrow}  {label}{plain(fault)}",
        markup=False,
        highlight=False,
        style="yellow" if step.fault else "dim",
        overflow="ellipsis",
        no_wrap=True,
    )


def print_results(console: Console, results: Results) -> None:
    """Failures in full, then a table of verdicts by level."""
    for row in results.results:
        if row.verdict in (Verdict.FAIL, Verdict.HARNESS_ERROR) and "expected" not in row.tags:
            print_failure(console, row)
    _print_alike(console, results)
    _print_rules(console, results)
    _print_open(console, results)
    console.print()
    console.print(plain(f"{results.client} {results.client_version}"), markup=False, style="bold")
    console.print(_by_level(results))
    every: list[RowResult | RuleResult] = [*results.results, *results.rules]
    defects = causes(every)
    if defects:
        known = sum(bool(row.cause) for row in every)
        console.print(
            f"{_many(known, 'known failure')} from {_many(len(defects), 'root cause')}", highlight=False
        )
    count = len(results.results)
    console.print(
        f"{executed_share(results.results):.0%} of the MUST scenarios for this client were executed; "
        f"{_many(count, 'scenario')} in {results.seconds:.1f} s; seed {results.seed}; "
        f"exit code {results.exit_code}",
        highlight=False,
    )


def _print_rules(console: Console, results: Results) -> None:
    for rule in results.rules:
        if "unexpected pass" in rule.tags:
            shown = in_short(rule.rows)
            console.print(
                f"unexpected pass of the rule {rule.rule} in {shown}: take it out of the expectation file",
                markup=False,
            )
        elif "expected" not in rule.tags:
            print_rule(console, rule)


def _print_open(console: Console, results: Results) -> None:
    """What is not clear, and what was expected to fail and did not."""
    for row in results.results:
        if row.verdict is Verdict.INCONCLUSIVE:
            texts = [f"adapter: {text}" for text in brief(row.adapter, IN_A_LINE)] + [row.reason]
            line = f"inconclusive {row.id} ({row.level}): {'; '.join(texts)}"
            console.print(plain(line), markup=False, highlight=False, style="magenta", soft_wrap=True)
        if "unexpected pass" in row.tags:
            console.print(f"unexpected pass {row.id}: take it out of the expectation file", markup=False)


def _by_level(results: Results) -> Table:
    """How many rows of each level ended how."""
    table = Table(pad_edge=False)
    table.add_column("level")
    verdicts = [v for v in Verdict if any(r.verdict is v for r in results.results)]
    for verdict in verdicts:
        table.add_column(verdict.value, justify="right", style=STYLES[verdict])
    for level in ("MUST", "SHOULD", "MAY"):
        rows = [r for r in results.results if r.level == level]
        if rows:
            table.add_row(level, *(_count(rows, v) for v in verdicts))
    return table


def _print_alike(console: Console, results: Results) -> None:
    """A line for each criterion by which several rows fail."""
    for criterion, rows in alike(results.results).items():
        ids = in_short([row.id for row in rows])
        console.print(f"\n{len(rows)} rows fail by {criterion}: {ids}", markup=False, soft_wrap=True)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def _count(rows: list[RowResult], verdict: Verdict) -> str:
    found = [r for r in rows if r.verdict is verdict]
    known = sum("expected" in r.tags for r in found)
    return f"{len(found)} ({known} known)" if known else str(len(found) or "")
