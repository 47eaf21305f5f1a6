"""``fakebrokers gate``: whether a run may pass, for the CI of a project that depends on a client."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.cli.folders import with_folders
from conformance.gate import Change, Decision, GateRow, decide, load_baseline, load_runs
from conformance.printing import annotation, console_for_all, markdown, plain
from conformance.suite.verdicts import EXECUTED_SHARE
from fakebrokers.output import command

#: Findings that are shown, the worst; ``--json`` has them all.
SHOWN = 1000
#: Signs of a text in the table and in the summary, of which GitHub takes a MiB.
LONG, LONG_IN_SUMMARY = 4000, 500

_PATH = click.Path(exists=True, path_type=Path)
#: What a reader has to act on, and what is only good to know.
_STYLES = {
    Change.FAILED: "bold red",
    Change.REGRESSED: "bold red",
    Change.VANISHED: "bold red",
    Change.UNEXPECTED_PASS: "yellow",
    Change.SCENARIO_CHANGED: "yellow",
    Change.FIXED: "green",
    Change.KNOWN: "dim",
}


@click.command("gate")
@click.argument("results", nargs=-1, required=True, type=_PATH, metavar="RESULTS...")
@click.option("--baseline", type=_PATH, metavar="FILE", help="An earlier results.json, or its folder.")
@click.option(
    "--expect",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Known failures, with their causes.",
)
@with_folders
@click.option("--strict", is_flag=True, help="SHOULD counts like MUST; an unexpected pass is a regression.")
@click.option(
    "--executed",
    type=click.FloatRange(0, 1),
    default=EXECUTED_SHARE,
    show_default=True,
    help="Share of the MUST scenarios that has to be executed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def gate_command(
    results: tuple[Path, ...],
    baseline: Path | None,
    expect: Path | None,
    strict: bool,
    executed: float,
    as_json: bool,
) -> int:
    """Decide by known failures and a baseline if a run may pass.

    RESULTS is a results.json or the report folder that holds it; several are runs of the same client. The
    baseline may be of another version: what gets worse by the upgrade, and what better.

    Exit code 1: a MUST fails that is not known to. 4: worse than the baseline. 2: too little was executed.
    """
    runs = load_runs(results)
    known = None
    if expect is not None:
        from conformance.known.defects import Part
        from conformance.known.files import load

        known = load(expect, Part.SUITE)
        known.check_names(expect, [runs[0].client], runs[0].client_version)
    before = load_baseline(baseline, runs[0].client) if baseline is not None else None
    decision = decide(runs, baseline=before, known=known, strict=strict, required=executed)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(decision), indent=1).decode())
    else:
        show(console_for_all(), decision)
        for line in workflow_commands(decision) if os.environ.get("GITHUB_ACTIONS") == "true" else ():
            command(line)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(summary_of(decision))
    return decision.exit_code


def headline(decision: Decision) -> str:
    """Who was compared with whom, as a sentence."""
    runs = f" in {decision.runs} runs" if decision.runs > 1 else ""
    who = f"{decision.client} {decision.client_version}{runs}"
    return f"{who} against {decision.baseline_version}" if decision.baseline_version else who


def outcome(decision: Decision) -> str:
    """The exit code and why."""
    why = "; ".join(decision.reasons) or "no reason against it"
    return f"exit code {decision.exit_code}: {why}"


def show(console: Console, decision: Decision) -> None:
    """What a person wants to know, the worst first."""
    console.print(plain(headline(decision)), markup=False, style="bold")
    if decision.findings:
        table = Table(pad_edge=False, box=None)
        for name in ("change", "row", "level", "what"):
            table.add_column(name, overflow="fold")
        for found in decision.findings[:SHOWN]:
            style = _STYLES.get(found.change, "")
            cells = (found.change.value, found.name, found.level, what(found))
            table.add_row(*(Text(_cut(plain(cell), LONG)) for cell in cells), style=style)
        console.print(table)
        for line in _left_out(decision):
            console.print(line, highlight=False)
    console.print(
        f"{decision.executed:.0%} of the MUST scenarios for this client were executed", highlight=False
    )
    console.print(outcome(decision), markup=False, highlight=False)


def _left_out(decision: Decision) -> list[str]:
    """How many findings are not shown, as a line."""
    count = len(decision.findings) - SHOWN
    return [f"{count} more rows are not shown here: --json has them all"] if count > 0 else []


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def what(found: GateRow) -> str:
    """What there is to say of a row beyond its name."""
    parts = [f"fails in {found.failed} of {found.runs} runs"] if found.failed and found.runs > 1 else []
    if found.before and found.before != found.now:
        parts.append(f"{found.before} -> {found.now or 'not in the results'}")
    parts += [f"[{found.criterion}]"] if found.criterion else []
    parts += [found.cause or found.reason] if found.cause or found.reason else []
    return "; ".join(parts)


def workflow_commands(decision: Decision) -> list[str]:
    """Commands of GitHub Actions that mark what has to be looked at."""
    lines = []
    for found in decision.findings[:SHOWN]:
        bad = found.change in (Change.FAILED, Change.REGRESSED, Change.VANISHED)
        if bad or found.change is Change.UNEXPECTED_PASS:
            title = f"{found.change.value}: {found.name}"
            lines.append(annotation("error" if bad else "warning", title, f"{found.title}: {what(found)}"))
    return lines


def summary_of(decision: Decision) -> str:
    """The same for the summary of a step, in Markdown."""
    lines = [f"### {markdown(headline(decision))}", "", markdown(outcome(decision)), ""]
    if decision.findings:
        lines += ["| change | row | level | what |", "|---|---|---|---|"]
        for found in decision.findings[:SHOWN]:
            name, why = (markdown(_cut(text, LONG_IN_SUMMARY)) for text in (found.name, what(found)))
            lines.append(f"| {found.change.value} | {name} | {found.level} | {why} |")
        lines += ["", *_left_out(decision)]
    return "\n".join(lines).rstrip() + "\n\n"
