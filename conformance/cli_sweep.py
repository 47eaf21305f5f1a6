"""``fakebrokers sweep``: generated faults at every position of base scripts, judged by invariants alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.sweep.sweep import Failure, Sweep

REFERENCE = "reference"
FOLDER = Path(".fakebrokers") / "sweep"
LEDGER = "ledger.json"


@click.command("sweep")
@click.option("--client", metavar="NAME", help="A bundled client, or `reference`.")
@click.option("--adapter", metavar="CMD", help="The command of your own adapter.")
@click.option("--protocol", type=click.Choice(protocol_names()), help="Needed if the client speaks several.")
@click.option("--mutant", metavar="NAME", help="The reference client with this defect.")
@click.option("--minutes", type=click.FloatRange(0.01, 10_000), default=1.0, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order in which specs are drawn.")
@click.option("--again", is_flag=True, help="Begin anew instead of where the last sweep has stopped.")
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write replay files here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def sweep_command(
    client: str | None,
    adapter: str | None,
    protocol: str | None,
    mutant: str | None,
    minutes: float,
    seed: int,
    again: bool,
    report: Path | None,
    as_json: bool,
) -> int:
    """Disturb a client at every position and judge what it does by rules that always hold.

    Exit code 1: a rule was violated.
    """
    from conformance.sweep.order import Ledger, Order
    from conformance.sweep.run import client_of
    from conformance.sweep.sweep import Sweep
    from conformance.sweep.universe import universe

    if (client is None) == (adapter is None):
        raise UsageError("say which client: --client NAME or --adapter CMD")
    if client != REFERENCE:
        raise UsageError("only `--client reference` can be swept so far")
    if protocol is None:
        raise UsageError("say with --protocol what the client speaks")
    name = f"{REFERENCE}-{protocol}" + (f"-{mutant}" if mutant else "")
    folder = report or FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    items = universe(protocol)
    ledger = Ledger({}, len(items)) if again else Ledger.load(folder / LEDGER, len(items))
    sweep = Sweep(client_of(protocol, mutant or ""))
    seconds = sweep.go(Order(items, seed, ledger), minutes * 60)
    ledger.save(folder / LEDGER)
    rows = [_row(failure) for failure in sweep.failures.values()]
    if as_json:
        click.echo(json.dumps({"runs": sweep.runs, "failed": rows, "seconds": round(seconds, 1)}, indent=1))
    else:
        _show(sweep, seconds)
    return ExitCode.FAILED if rows else 0


def _row(failure: Failure) -> dict[str, Any]:
    return {
        "base": failure.spec.base,
        "invariants": failure.names,
        "replay": "",
        "faults": len(failure.spec.bends) + len(failure.spec.changes),
    }


def _show(sweep: Sweep, seconds: float) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for failure in sweep.failures.values():
        console.print(f"{failure.spec}", markup=False)
        for finding in failure.findings:
            console.print(f"    {finding}", markup=False)
    rate = sweep.runs / seconds if seconds else 0.0
    console.print(
        f"{sweep.runs} runs in {seconds:.0f} s ({rate:.0f} a second), {len(sweep.failures)} kinds of failures"
    )
