"""``fakebrokers chaos``: workloads under schedules of faults that are drawn from a seed."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from conformance.cli.replay import command_of, find_own, protocol_of, real_time_option
from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode, reserve, seed_range
from fakebrokers.errors import UsageError
from fakebrokers.interrupts import interruptible
from fakebrokers.progress import Shown
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.search.random.campaign import ChaosCampaign
    from conformance.search.random.client import ChaosClient
    from conformance.search.random.draw import Setting

CONTRACTS = ("at-most-once", "at-least-once", "exactly-once", "ordered")
RUNS = 100  #: without --seeds and --minutes


@click.command("chaos")
@click.option("--client", metavar="NAME", help="A bundled client, or `reference`.")
@click.option("--adapter", metavar="CMD", help="The command of your own adapter.")
@click.option("--protocol", type=click.Choice(protocol_names()), help="Needed if the client has several.")
@click.option("--mutant", metavar="NAME", help="The reference client with this defect.")
@click.option("--seeds", metavar="A..B", help=f"These seeds; 1..{RUNS} unless --minutes is given.")
@click.option("--commit", metavar="HASH", help="Seeds made of this text, such as the hash of a commit.")
@click.option("--minutes", type=click.FloatRange(0.01, 10_000), help="How long to go on.")
@click.option(
    "--realism",
    type=click.Choice(("legal", "environment", "illegal")),
    default="environment",
    show_default=True,
    help="The worst that may happen.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="KIND|MODULE:CLASS",
    help="What the application does; may be repeated.",
)
@click.option(
    "--nemesis", "nemeses", multiple=True, metavar="NAME", help="Only these disturbances; may be repeated."
)
@click.option("--contract", metavar="WORDS", default="", help=f"What has to hold: {', '.join(CONTRACTS)}.")
@click.option(
    "--target",
    metavar="URL",
    help="A real server, a URL or HOST:PORT, through a proxy that disturbs the client.",
)
@click.option("--toxiproxy", metavar="URL", help="Disturb it with the Toxiproxy that has this API instead.")
@click.option(
    "--expect",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What it is known to violate.",
)
@click.option("--shard", metavar="K/N", help="The K-th of N parts of the seeds.")
@click.option("-n", "processes", type=click.IntRange(1, 64), help="Runs at once.")
@real_time_option
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write replay files, pages and journals here.",
)
@click.option(
    "--traces",
    is_flag=True,
    help="Keep every byte in the journals, credentials too, for `analyze --rules`.",
)
@click.option("--no-canary", is_flag=True, help="Do not try the harness on a broken client first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def chaos_command(
    client: str | None,
    adapter: str | None,
    protocol: str | None,
    mutant: str | None,
    seeds: str | None,
    commit: str | None,
    minutes: float | None,
    realism: str,
    workloads: tuple[str, ...],
    nemeses: tuple[str, ...],
    contract: str,
    target: str | None,
    toxiproxy: str | None,
    expect: Path | None,
    shard: str | None,
    processes: int | None,
    real_time: bool,
    report: Path | None,
    traces: bool,
    no_canary: bool,
    as_json: bool,
) -> int:
    """Try a client with random workloads under random faults.

    Exit code 1: a run failed; 2: no run came to a verdict; 3: the harness itself is broken.
    """
    from conformance.cli.campaign import say_why_process, shrinking
    from conformance.known.defects import Part
    from conformance.known.files import load
    from conformance.search.random.campaign import ChaosCampaign
    from conformance.search.random.client import ChaosClient
    from conformance.search.random.runs import sharded

    if (client is None) == (adapter is None):
        raise UsageError("expected one of --client NAME and --adapter CMD")
    if toxiproxy and not target:
        raise UsageError("--toxiproxy needs --target: the server behind it")
    if traces and report is None:
        raise UsageError("--traces needs --report: the folder for the journals")
    reserve(report)
    spoken = protocol_of(client, protocol)
    command = command_of(adapter)
    subject = ChaosClient(
        spoken,
        client or "",
        mutant or "",
        command,
        target or "",
        toxiproxy or "",
        stock_in_memory=not real_time,
    )
    setting = _setting(subject, realism, workloads, nemeses)
    _check_contract(contract)
    known = load(expect, Part.CHAOS, protocol=subject.protocol) if expect is not None else None
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    say_why_process(subject, console)
    campaign = ChaosCampaign(
        subject,
        setting,
        report,
        expected=known.found_in(Part.CHAOS) if known is not None else None,
        contract=contract,
        keeps_journals=report is not None,
        keeps_traces=traces,
        processes=processes or (4 if subject.is_process else 1),
    )
    wanted, count = _seeds(seeds, commit, minutes, shard)
    with interruptible() as interrupts:
        try:
            if not no_canary and not _canary(setting.protocol, console):
                return ExitCode.HARNESS
            with Shown(console, "chaos", count, minutes and minutes * 60) as shown:
                campaign.go(
                    sharded(wanted, _shard(shard)),
                    minutes and minutes * 60,
                    lambda so_far, _: shown.advance(so_far.runs, so_far.words.get("fail", 0)),
                    lambda failures, limit_s: shown.say(
                        shrinking(failures, limit_s, confirms=subject.is_confirmed)
                    ),
                )
        except KeyboardInterrupt:
            _print(campaign, as_json)
            raise SystemExit(interrupts.exit_code) from None
    _print(campaign, as_json)
    return _exit_code(campaign)


def _setting(
    subject: ChaosClient, realism: str, workloads: tuple[str, ...], nemeses: tuple[str, ...]
) -> Setting:
    from conformance.search.random.draw import Setting, available
    from conformance.search.random.material import material_of
    from fakebrokers.faults import Realism

    find_own(*workloads)
    if subject.target and not material_of(subject.protocol).actions.remote:
        raise UsageError(f"there is no chaos in front of a real server of {subject.protocol}")
    remote = bool(subject.target)
    setting = Setting(
        subject.protocol,
        Realism(realism),
        workloads,
        is_process=subject.is_process or subject.is_confirmed,
        is_remote=remote,
        is_toxic=bool(subject.toxiproxy),
    )
    there = [name.rpartition(" ")[2] for name in available(setting, material_of(subject.protocol))]
    for name in nemeses:
        if name not in there:
            raise UsageError(f"--nemesis: expected some of {', '.join(there)}, got {name!r}")
    return setting._replace(nemeses=nemeses)


def _check_contract(contract: str) -> None:
    for word in contract.split():
        if word not in CONTRACTS:
            raise UsageError(f"--contract: expected words of {', '.join(CONTRACTS)}, got {word!r}")


def _seeds(
    seeds: str | None, commit: str | None, minutes: float | None, shard: str | None
) -> tuple[Iterator[str], int | None]:
    """The seeds, and how many; None: as many as there is time for."""
    if seeds is not None and commit is not None:
        raise UsageError("expected one of --seeds and --commit")
    prefix = f"{commit}-" if commit is not None else ""
    if seeds is None and minutes is not None:
        return (f"{prefix}{number}" for number in itertools.count(1)), None
    first, last = seed_range(seeds) if seeds is not None else (1, RUNS)
    found = _shard(shard)
    count = last - first + 1
    if found is not None:
        count = len(range(found[0] - 1, count, found[1]))
    return (f"{prefix}{number}" for number in range(first, last + 1)), count


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard: expected K/N with K from 1 to N, got {text!r}")
    return int(found[1]), int(found[2])


def _canary(protocol: str, console: Console) -> bool:
    from conformance.search.random.canary import canary_fails

    if canary_fails(protocol):
        return True
    console.print(f"the harness is broken: a client of {protocol} with a known defect does not fail")
    return False


def _print(campaign: ChaosCampaign, as_json: bool) -> None:
    from conformance.cli.campaign import print_failures

    if as_json:
        click.echo(json.dumps(campaign.document(), indent=1))
        return
    console = SafeConsole(highlight=False, soft_wrap=True)
    print_failures(campaign, console)
    words = ", ".join(f"{count} {word}" for word, count in sorted(campaign.words.items()))
    rate = campaign.runs / campaign.seconds if campaign.seconds else 0.0
    console.print(
        f"{campaign.runs} runs in {campaign.seconds:.0f} s ({rate:.1f} a second): {words or 'none'}"
    )
    for cause, count in campaign.causes.items():
        console.print(f"    known, in {count} runs: {cause}", markup=False)
    for reason in dict.fromkeys(campaign.left.values()):
        count = sum(1 for other in campaign.left.values() if other == reason)
        console.print(f"    no verdict in {count}: {reason}", markup=False)


def _exit_code(campaign: ChaosCampaign) -> int:
    from conformance.search.random.campaign import KNOWN

    words: dict[str, Any] = campaign.words
    if words.get("harness error"):
        return ExitCode.HARNESS
    if words.get("fail"):
        return ExitCode.FAILED
    return 0 if words.get("pass") or words.get(KNOWN) else ExitCode.INCONCLUSIVE
