"""``fakebrokers scoreboard``: clients, their last versions and all rows, as static pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode, reserve
from fakebrokers.errors import UsageError
from fakebrokers.interrupts import interruptible

if TYPE_CHECKING:
    from conformance.clients.adapters.registry import Client
    from conformance.suite.scenario import Scenario
    from conformance.versions.keep import KeptVersion
    from conformance.versions.sources import Source


@click.command("scoreboard")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    required=True,
    help="Write the pages here; the verdicts are kept below, and judged again only where rows have changed.",
)
@click.option("--clients", metavar="A,B", help="Only these; all that are bundled, unless given.")
@click.option(
    "--last", type=click.IntRange(1, 50), default=5, show_default=True, help="Releases of each client."
)
@click.option(
    "--set",
    "which",
    type=click.Choice(["smoke", "gate", "full"]),
    default="gate",
    show_default=True,
    help="Which rows.",
)
@click.option("-n", "parallel", type=click.IntRange(1, 64), help="Scenarios at once.")
def scoreboard_command(out: Path, clients: str | None, last: int, which: str, parallel: int | None) -> int:
    """Judge the last releases of clients, and write pages of it.

    The pages show what each release has fixed and broken.

    Exit code 0: the pages are there; 2: no version could be judged.
    """
    from conformance.findings import findings
    from conformance.suite.conform import CutShort
    from conformance.suite.load import all_scenarios, select
    from conformance.versions.board import board
    from conformance.versions.pages import write_board

    reserve(out)
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    boards = []
    ended_by = 0
    with interruptible() as interrupts:
        try:
            for client, protocol in _chosen(clients):
                rows = select(all_scenarios(), protocol=protocol, which=which)
                judged = _judge(console, out, client, protocol, rows, last, parallel)
                boards.append(board(client.package.library or client.library, judged, rows, findings()))
        except KeyboardInterrupt as stopped:
            ended_by = stopped.results.exit_code if isinstance(stopped, CutShort) else interrupts.exit_code
            console.print("cut short: the pages have the clients until then", markup=False)
    path = write_board(out, boards)
    SafeConsole(highlight=False, soft_wrap=True).print(f"scoreboard: {path}", markup=False)
    if ended_by:
        raise SystemExit(ended_by)
    is_empty = not any(release.kept.rows for each in boards for release in each.releases)
    return ExitCode.INCONCLUSIVE if is_empty else ExitCode.OK


def _chosen(names: str | None) -> list[tuple[Client, str]]:
    """Clients, each with every protocol that it speaks."""
    from conformance.clients.adapters.registry import bundled, find

    if names is None:
        chosen = [each for each in bundled() if not each.name.startswith("reference-")]
    else:
        chosen = [find(name.strip()) for name in names.split(",")]
    if any(client.packages for client in chosen):
        raise UsageError("--clients: expected names without versions; --last says how many of each")
    return [(client, protocol) for client in chosen for protocol in client.protocols]


def _judge(
    console: SafeConsole,
    out: Path,
    client: Client,
    protocol: str,
    rows: Sequence[Scenario],
    last: int,
    parallel: int | None,
) -> list[KeptVersion]:
    """The verdicts on the last releases, the oldest first; of what has one version here, on that."""
    from conformance.versions.keep import KeptVersion, judged, place_of, run_rows
    from conformance.versions.sources import Installed, Releases

    releases: Source = Releases(client.name) if client.package.manager else Installed(client)
    try:
        versions = releases.versions()[-last:]
    except UsageError as error:
        console.print(f"{client.name}: {error}; the installed version alone", markup=False)
        releases = Installed(client)
        versions = releases.versions()
    found = []
    for version in versions:
        blank = KeptVersion(client=client.name, protocol=protocol, version=version)
        with console.status(f"{client.name} {version}"):
            kept = judged(
                place_of(out, client.name, protocol, version),
                blank,
                rows,
                lambda again, version=version: run_rows(  # type: ignore[misc]
                    client.name, protocol, releases.command(version), again, parallel
                ),
            )
        what = f"not judged: {kept.refused}" if kept.refused else f"{len(kept.rows)} rows"
        console.print(f"{client.name} {version}: {what}", markup=False)
        found.append(kept)
    return found
