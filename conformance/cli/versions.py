"""``conform`` with several versions of a client: each is judged, and each upgrade answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.cli.gate import what
from conformance.clients.adapter.base import AdapterFailed
from conformance.printing import plain
from conformance.results import Results
from conformance.suite.folder import write_folder
from conformance.suite.verdicts import PRECEDENCE
from conformance.upgrade import Upgrade, upgrades
from conformance.versions.differences import Differences
from fakebrokers import __version__
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError


def versions_of(client: str) -> list[str]:
    """The names that ``NAME==VERSION,==VERSION`` stands for; a single one as it is.

    Raises:
        UsageError: A further one is neither ``==VERSION`` nor another version of the first one.
    """
    first, *further = (part.strip() for part in client.split(","))
    name = first.partition("==")[0]
    names = [first, *(f"{name}{part}" if part.startswith("==") else part for part in further)]
    for each in names[1:]:
        if not each.startswith(f"{name}==") and each != name:
            raise UsageError(f"--client {client}: expected versions of one client, such as {name}==1.0,==1.1")
    if len(set(names)) < len(names):
        raise UsageError(f"--client {client}: a version is there twice")
    return names


def judge_versions(
    names: Sequence[str],
    judge: Callable[[str, Path | None], Results],
    report: Path | None,
    console: Console,
    *,
    as_json: bool,
    uses: Sequence[str] = (),
    differ: Callable[[str, str], Differences] | None = None,
) -> int:
    """Judge each version, and say what each upgrade makes worse and better.

    Args:
        names: Of `versions_of`, at least two.
        judge: Runs one of them, and writes its report into the folder, if there is one.
        report: The folder of all of them; each has one of its own inside.
        uses: What one relies on; see `conformance.upgrade.upgrade`.
        differ: Compares two of them, the older one first, in generated runs.

    Returns:
        The exit code: the worst of the upgrades', and 2 where a version could not be judged. What fails in
        both versions does not count.
    """
    runs = []
    for name in names:
        console.print(f"[bold]{name}[/]", highlight=False)
        folder = None if report is None else report / name.replace("==", "-")
        try:
            runs.append(judge(name, folder))
        except AdapterFailed as failed:
            console.print(plain(f"{name} could not be judged: {failed}"), markup=False, style="bold yellow")
            runs.append(_not_judged(name, failed, folder))
    judged = [each for each in runs if each.results]
    behaviours = []
    if differ is not None:
        for older, newer in pairwise(name for name, each in zip(names, runs, strict=True) if each.results):
            console.print(f"generated runs of {older} and {newer}", highlight=False)
            behaviours.append(differ(older, newer))
    found = upgrades(judged, uses, behaviours)
    if report is not None:
        _write(runs, found, report)
    if as_json:
        click.echo(json.dumps({"results": msgspec.to_builtins(runs), "upgrades": msgspec.to_builtins(found)}))
    else:
        for each in found:
            show(console, each)
        if report is not None:
            console.print(f"report: {report}", highlight=False)
    codes = {ExitCode(each.exit_code) for each in found}
    if len(judged) < len(runs):
        codes.add(ExitCode.INCONCLUSIVE)
    return next((code for code in PRECEDENCE if code in codes), ExitCode.OK)


def _not_judged(name: str, failed: AdapterFailed, folder: Path | None) -> Results:
    """The results of a version whose adapter does not start; they are written into the folder, too."""
    client, _, version = name.partition("==")
    results = Results(
        client=client,
        client_version=version,
        suite_version=__version__,
        seed=0,
        started=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=0.0,
        results=(),
        exit_code=int(ExitCode.INCONCLUSIVE),
        complete=False,
        reasons=(f"it could not be judged: {failed}",),
    )
    if folder is not None:
        write_folder(results, folder)
    return results


def _write(runs: Sequence[Results], found: Sequence[Upgrade], report: Path) -> None:
    """One page with all versions beside each other; those of each version are in its own folder."""
    from conformance.report import write_report

    report.mkdir(parents=True, exist_ok=True)
    (report / "upgrades.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1))
    write_report(report, runs, upgrades=found)


def show(console: Console, found: Upgrade) -> None:
    """What differs, as a table, and the answer."""
    if found.findings:
        table = Table(pad_edge=False, box=None)
        for name in ("change", "row", "level", "what"):
            table.add_column(name, overflow="fold")
        for each in found.findings:
            cells = (each.change.value, each.name, each.level, what(each))
            table.add_row(*(Text(plain(cell)) for cell in cells))
        console.print(table)
    console.print(plain(found.answer), markup=False, highlight=False, style="bold")
