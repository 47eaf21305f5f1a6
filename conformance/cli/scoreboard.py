"""``fakebrokers scoreboard``: clients, their last versions and all rows, as static pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode, reserve
from fakebrokers.errors import UsageError
from fakebrokers.interrupts import Interrupts, interruptible

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.clients.adapters.registry import Client
    from conformance.versions.board import ClientBoard
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
@click.option(
    "--known",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Files of known defects, such as rstream.toml: causes, and rows that fail sometimes.",
)
@click.option("-n", "parallel", type=click.IntRange(1, 64), help="Scenarios at once.")
def scoreboard_command(
    out: Path, clients: str | None, last: int, which: str, known: Path | None, parallel: int | None
) -> int:
    """Judge the last releases of clients, and write pages of it.

    The pages show what each release has fixed and broken.

    Exit code 0: the pages are there; 2: no version could be judged.
    """
    from conformance.versions.pages import write_board

    reserve(out)
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    entries, ended_by = _entries(out, clients, which, known), 0
    with interruptible() as interrupts:
        try:
            for number, entry in enumerate(entries, 1):
                console.print(f"{number} of {len(entries)}: {entry.client.name}", markup=False)
                entry.judge(console, interrupts, last, parallel)
        except KeyboardInterrupt:
            ended_by = interrupts.exit_code
            console.print("cut short: the pages have what was judged until then", markup=False)
    boards = [found for entry in entries if (found := entry.board(last)) is not None]
    path = write_board(out, boards, which)
    SafeConsole(highlight=False, soft_wrap=True).print(f"scoreboard: {path}", markup=False)
    if ended_by:
        raise SystemExit(ended_by)
    is_empty = not any(release.kept.rows for each in boards for release in each.releases)
    return ExitCode.INCONCLUSIVE if is_empty else ExitCode.OK


def _entries(out: Path, names: str | None, which: str, known: Path | None) -> list[_Entry]:
    """Clients, each with every protocol that it speaks."""
    from conformance.clients.adapters.registry import bundled, find

    if names is None:
        chosen = [each for each in bundled() if not each.name.startswith("reference-")]
    else:
        chosen = [find(name.strip()) for name in names.split(",")]
    if any(client.packages for client in chosen):
        raise UsageError("--clients: expected names without versions; --last says how many of each")
    return [_Entry(out, client, protocol, which, known) for client in chosen for protocol in client.protocols]


class _Entry:
    """A client with a protocol, and what is known of its versions."""

    def __init__(self, out: Path, client: Client, protocol: str, which: str, known: Path | None) -> None:
        from conformance.known.defects import KnownDefects, Part
        from conformance.known.files import load
        from conformance.suite.load import all_scenarios, select
        from conformance.versions.keep import Shelf

        self.client = client
        self._rows = select(all_scenarios(), protocol=protocol, which=which)
        self._protocol = protocol
        self._shelf = Shelf(out, client.name, protocol)
        self._versions: list[str] = []
        path = (known or Path()) / f"{client.name}.toml"
        self._defects = load(path, Part.SUITE) if known is not None and path.is_file() else KnownDefects()

    def judge(self, console: Console, interrupts: Interrupts, last: int, parallel: int | None) -> None:
        """Judge its last releases; of what has one version here, that."""
        from conformance.versions.judging import Judging, side_by_side

        name = self.client.name
        source = self._source(console, last)
        judge = side_by_side(name, self._protocol, console, interrupts, parallel, self._defects)
        say = lambda line: console.print(f"    {name} {line}", markup=False)  # noqa: E731
        Judging(self._shelf, source, self._rows, judge, say).of(self._versions)

    def _source(self, console: Console, last: int) -> Source:
        from conformance.versions.sources import Installed, Releases

        try:
            releases: Source = Releases(self.client.name)
            self._versions = releases.versions()[-last:]
        except UsageError as error:
            if self.client.package.manager:
                console.print(f"    {error}; the installed version alone", markup=False)
            releases = Installed(self.client)
            self._versions = releases.versions()
        return releases

    def board(self, last: int) -> ClientBoard | None:
        """Its board: of the last releases, or where they were not asked for, of the last that are kept."""
        from conformance.findings import findings
        from conformance.versions.board import board

        versions = self._versions or self._shelf.versions()[-last:]
        found = [self._shelf.load(version).of(self._rows) for version in versions]
        kept = [each for each in found if each.rows or each.refused]
        if not kept:
            return None
        package = self.client.package
        library, is_released = package.library or self.client.library, bool(package.manager)
        return board(library, kept, self._rows, findings(), self._defects, is_released=is_released)
