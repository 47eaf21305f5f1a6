"""``fakebrokers sweep``: generated faults at every position of base scripts, judged by invariants alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.cli.completion import client_names
from conformance.cli.measured import coverage_option, deliver, meter_for
from conformance.cli.replay import command_of, protocol_of, real_time_option
from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode, reserve
from fakebrokers.errors import UsageError
from fakebrokers.interrupts import interruptible
from fakebrokers.progress import Shown
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.search.systematic.campaign import SweepCampaign


@click.command("sweep")
@click.option(
    "--client", metavar="NAME", shell_complete=client_names, help="A bundled client, or `reference`."
)
@click.option("--adapter", metavar="CMD", help="The command of your own adapter.")
@click.option("--protocol", type=click.Choice(protocol_names()), help="Needed if the client has several.")
@click.option("--mutant", metavar="NAME", help="The reference client with this defect.")
@click.option(
    "--minutes",
    type=click.FloatRange(0.01, 10_000),
    default=1.0,
    show_default=True,
    help="How long to sweep.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the order in which specs are drawn."
)
@click.option(
    "--expect",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What it is known to violate.",
)
@click.option(
    "--specs",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run the specs of this list, instead of drawing any.",
)
@click.option(
    "--write-specs",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a list for `ci/conform`: some of what was run.",
)
@click.option("--again", is_flag=True, help="Begin again from the start, not where the last sweep stopped.")
@click.option(
    "-n",
    "processes",
    type=click.IntRange(1, 64),
    help="Runs at once; one of a client in this process unless given, ten of others.",
)
@real_time_option
@coverage_option
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
    expect: Path | None,
    specs: Path | None,
    write_specs: Path | None,
    again: bool,
    processes: int | None,
    real_time: bool,
    coverage: bool,
    report: Path | None,
    as_json: bool,
) -> int:
    """Disturb a client at every frame, and judge it by rules.

    The rules hold in every run, whatever was disturbed; 'fakebrokers explain rules' lists them.

    A client in Python may run in this process, on virtual time. What it fails there counts if a process of
    its own fails it, too.

    Exit code 1: a rule was violated.
    """
    from conformance.cli.campaign import say_why_process, shrinking
    from conformance.known.defects import Part
    from conformance.known.files import load
    from conformance.search.systematic.campaign import SweepCampaign, SweptClient
    from conformance.search.systematic.fixed import load_specs, save_specs

    if (client is None) == (adapter is None):
        raise UsageError("name the client: --client NAME or --adapter CMD")
    reserve(report)
    if coverage and processes:
        raise UsageError("--coverage measures one run at a time: leave out -n")
    meter = meter_for(client, report) if coverage else None
    subject = SweptClient(
        protocol_of(client, protocol),
        client or "",
        mutant or "",
        command_of(adapter),
        stock_in_memory=not real_time,
        measured=None if meter is None else meter.client,
    )
    known = load(expect, Part.SWEEP).found_in(Part.SWEEP) if expect is not None else None
    listed = load_specs(specs, subject.protocol) if specs is not None else []
    campaign = SweepCampaign(
        subject,
        report,
        expected=known,
        seed=seed,
        again=again,
        specs=listed,
        processes=processes or 0,
        meter=meter,
    )
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    say_why_process(subject, console)
    with interruptible() as interrupts:
        try:
            with Shown(console, "sweep", None, minutes * 60) as shown:
                campaign.go(
                    minutes * 60,
                    lambda now: shown.advance(now.runs, now.kinds, now.left and now.runs + now.left),
                    lambda failures, limit_s: shown.say(
                        shrinking(failures, limit_s, confirms=subject.is_confirmed)
                    ),
                )
        except KeyboardInterrupt:
            _print(campaign, as_json)
            raise SystemExit(interrupts.exit_code) from None
    if write_specs is not None:
        save_specs(write_specs, campaign.chosen())
    _print(campaign, as_json)
    return ExitCode.FAILED if campaign.failures else 0


def _print(campaign: SweepCampaign, as_json: bool) -> None:
    from conformance.cli.campaign import print_failures

    said = SafeConsole(stderr=as_json, highlight=False, soft_wrap=True)
    covered = {} if campaign.meter is None else {"coverage": deliver(campaign.meter, said)}
    if as_json:
        click.echo(json.dumps({**campaign.document(), **covered}, indent=1))
        return
    console = SafeConsole(highlight=False, soft_wrap=True)
    print_failures(campaign, console)
    rate = campaign.runs / campaign.seconds if campaign.seconds else 0.0
    kinds = len(campaign.failures)
    console.print(f"{campaign.runs} runs in {campaign.seconds:.0f} s ({rate:.0f} a second), {kinds} failures")
    if campaign.left:
        console.print(f"{campaign.left} specs are left: the next sweep goes on with them")
    elif campaign.left == 0:
        console.print("every spec has been run: --again begins again")
