"""``fakebrokers mutants``: the proof that the scenarios can fail."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins
from rich.console import Console
from rich.progress import Progress

from conformance.cli.completion import scenario_ids
from conformance.cli.folders import with_folders
from conformance.printing import SafeConsole
from fakebrokers.errors import UsageError
from fakebrokers.interrupts import interruptible
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.clients.mutants.matrix import Matrix, MatrixRow
    from conformance.clients.mutants.registry import Mutant

EVERY_S = 10.0  #: between two lines of progress where there is no terminal


@click.command("mutants")
@click.option("--protocol", type=click.Choice(protocol_names()))
@click.option("--all", "everything", is_flag=True, help="Try every mutant on every scenario.")
@click.option("--mutant", "only", multiple=True, metavar="NAME", help="Only this mutant; may be given again.")
@click.option("--why", is_flag=True, help="Show the criterion by which each mutant fails.")
@with_folders
@click.option("--write", is_flag=True, help="Put what was found into kills.json, or sweep.json.")
@click.option("-n", "processes", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes.")
@click.option("--sweep", "by_sweep", is_flag=True, help="By generated faults alone, without scenarios.")
@click.option("--chaos", "by_chaos", is_flag=True, help="By random schedules alone, without scenarios.")
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=60.0,
    help="With --sweep or --chaos: for each mutant.",
)
@click.option(
    "--sample", type=click.IntRange(0), default=0, help="With --sweep or --chaos: this many, at random."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the choice that --sample makes."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.argument("ids", nargs=-1, metavar="[ID ...]", shell_complete=scenario_ids)
def mutants_command(
    protocol: str | None,
    everything: bool,
    only: tuple[str, ...],
    why: bool,
    write: bool,
    processes: int,
    by_sweep: bool,
    by_chaos: bool,
    seconds: float,
    sample: int,
    seed: int,
    as_json: bool,
    ids: tuple[str, ...],
) -> int:
    """Show which scenario catches which broken client.

    With --scenarios and no ID, the scenarios of these folders are tried. With --sweep and --chaos, chaos is
    tried on those that the sweep does not find.

    Exit code 1: a scenario catches none, the correct client fails it, or no scenario catches a mutant.
    """
    if by_sweep or by_chaos:
        if protocol is None:
            raise UsageError("--sweep and --chaos need --protocol")
        from conformance.search.kills import sample as chosen_of

        means = [name for name, wanted in (("sweep", by_sweep), ("chaos", by_chaos)) if wanted]
        chosen_mutants = chosen_of(protocol, sample, seed, only)
        return _unaided(chosen_mutants, means, seconds, processes, as_json, write=write and by_sweep)
    from conformance.clients.mutants.kills import write_kills
    from conformance.clients.mutants.matrix import matrix
    from conformance.clients.mutants.registry import find_mutant
    from conformance.clients.reference.registry import protocols
    from conformance.suite import outside
    from conformance.suite.load import all_scenarios, select

    if write and (only or outside.folders()):
        raise UsageError("--write needs all mutants, and ours alone: leave out --mutant and --scenarios")
    for name in only:
        for spoken in [protocol] if protocol else protocols():
            find_mutant(spoken, name)
    chosen = select(all_scenarios(), protocol=protocol, ids=ids)
    chosen = [item for item in chosen if item.protocol in protocols()]
    if outside.folders() and not ids:
        chosen = [item for item in chosen if outside.folder_of(item.script.__module__)]
    console = SafeConsole(stderr=as_json, highlight=False)
    with interruptible() as reported, _Shown(console, len(chosen)) as shown:
        try:
            found: Matrix = matrix(
                chosen, everything=everything, only=only, processes=processes, on_row=shown.advance
            )
        except KeyboardInterrupt:
            console.print(f"cut short after {shown.done} of {len(chosen)} scenarios; nothing was written")
            raise SystemExit(reported.exit_code) from None
    if write:
        write_kills(found.rows)
    if as_json:
        click.echo(json.dumps(found.document(), indent=1))
    else:
        _show(console, found, why)
    return 0 if found.is_proven else 1


def _unaided(
    chosen: list[Mutant], means: list[str], seconds: float, processes: int, as_json: bool, *, write: bool
) -> int:
    """Which mutants generated faults find alone, by one means after the other. Exit code 1: not all."""
    from conformance.search.kills import Kill, kills
    from conformance.search.random.kills import kill as by_schedules
    from conformance.search.systematic.alone import add_proofs
    from conformance.search.systematic.kills import kill as by_sweep

    console = SafeConsole(stderr=as_json, highlight=False)

    def show(one: Kill) -> None:
        said = f"{', '.join(one.by)} ({one.spec or one.detail})" if one.by else "NOT FOUND"
        console.print(
            f"{one.name:<40} {one.tag:<10} {one.runs:>5} runs  {said}", markup=False, soft_wrap=True
        )

    found: dict[str, Kill] = {}
    for each in means:
        left = [one for one in chosen if one.name not in found or not found[one.name].by]
        if len(means) > 1:
            console.print(f"{each}: {len(left)} mutants", markup=False)
        kill = by_sweep if each == "sweep" else by_schedules
        judged = kills(left, seconds, processes, show, kill=kill)
        found |= {one.name: one for one in judged}
        if write and each == "sweep":
            add_proofs(judged)
    caught = sum(1 for one in found.values() if one.by)
    if as_json:
        mutants = [to_builtins(found[name]) for name in sorted(found)]
        click.echo(json.dumps({"killed": caught, "of": len(found), "mutants": mutants}, indent=1))
    names = {"sweep": "the sweep", "chaos": "chaos"}
    console.print(
        f"{caught} of {len(found)} mutants are found by {' and '.join(names[each] for each in means)} alone",
        markup=False,
    )
    return 0 if caught == len(found) else 1


class _Shown:
    """A bar on a terminal, a line now and then elsewhere. Use it as a context manager."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("mutants", total=total)
        self._reported = time.monotonic()
        self.done = 0

    def __enter__(self) -> _Shown:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, row: MatrixRow) -> None:
        """One scenario is done."""
        self.done += 1
        self._bar.advance(self._task)
        if not self._console.is_terminal and time.monotonic() - self._reported >= EVERY_S:
            self._reported = time.monotonic()
            self._console.print(f"{self.done} of {self._total} scenarios, the last was {row.id}")


def _show(console: Console, found: Matrix, why: bool) -> None:
    rows = found.rows
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
    if found.unkilled_mutants:
        console.print(
            f"no scenario catches: {', '.join(found.unkilled_mutants)}", markup=False, soft_wrap=True
        )
