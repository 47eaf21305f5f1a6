"""``fakebrokers mutants``: the proof that the scenarios can fail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import Progress

from fakebrokers.errors import UsageError
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.mutants.matrix import Row


@click.command("mutants")
@click.option("--protocol", type=click.Choice(protocol_names()))
@click.option("--all", "everything", is_flag=True, help="Try every mutant on every scenario.")
@click.option("--mutant", "only", multiple=True, metavar="NAME", help="Only this mutant; may be given again.")
@click.option("--why", is_flag=True, help="Say by which criterion each mutant fails.")
@click.option("--write", is_flag=True, help="Put what was found into conformance/mutants/kills.json.")
@click.option("-n", "processes", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.argument("ids", nargs=-1, metavar="[ID ...]")
def mutants_command(
    protocol: str | None,
    everything: bool,
    only: tuple[str, ...],
    why: bool,
    write: bool,
    processes: int,
    as_json: bool,
    ids: tuple[str, ...],
) -> int:
    """Show which scenario catches which broken client.

    Exit code 1: a scenario catches none, or the correct client fails it.
    """
    from conformance.mutants.kills import write_kills
    from conformance.mutants.matrix import Matrix, matrix
    from conformance.mutants.registry import find_mutant, protocols
    from conformance.suite.load import all_scenarios, select

    if write and only:
        raise UsageError("--write needs all mutants: leave out --mutant")
    for name in only:
        for spoken in [protocol] if protocol else protocols():
            find_mutant(spoken, name)
    chosen = select(all_scenarios(), protocol=protocol, ids=ids)
    chosen = [item for item in chosen if item.protocol in protocols()]
    console = Console(stderr=as_json, highlight=False)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("mutants", total=len(chosen))
        found: Matrix = matrix(
            chosen,
            everything=everything,
            only=only,
            processes=processes,
            on_row=lambda _: progress.advance(bar),
        )
    if write:
        write_kills(found.rows)
    if as_json:
        click.echo(json.dumps(found.document(), indent=1))
    else:
        _show(console, found.rows, why)
    return 0 if all(row.is_proven for row in found.rows) else 1


def _show(console: Console, rows: list[Row], why: bool) -> None:
    for row in rows:
        name = "/".join(part for part in (row.id, row.variant) if part)
        if row.reference not in ("pass", "non-strict"):
            console.print(f"{name:<12} the reference client: {row.reference}: {row.reason}", markup=False)
            continue
        killers = ", ".join(row.killed_by) or "NO MUTANT FAILS"
        console.print(f"{name:<12} {killers}", markup=False, soft_wrap=True)
        if why:
            console.print(f"    {row.mode}, {row.seconds:.1f} s", markup=False)
            for mutant, reason in (row.criteria | row.survived).items():
                console.print(f"  {'x' if mutant in row.criteria else ' '} {mutant}: {reason}", markup=False)
    unproven = [row.id for row in rows if not row.is_proven]
    console.print(f"{len(rows) - len(unproven)} of {len(rows)} scenarios are proven", markup=False)
