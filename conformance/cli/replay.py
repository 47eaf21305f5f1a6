"""``fakebrokers replay`` and ``shrink``: what a search has written down, run again and made smaller."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.completion import client_names
from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from conformance.run.case import Case
    from conformance.search.client import SearchClient
    from conformance.search.replay import ReplayFile

UNNAMED = "the file names no client"

workload_option = click.option(
    "--workload",
    default="",
    metavar="MODULE:CLASS",
    help="Your own workload, where the file names it: no file has code imported by itself.",
)

real_time_option = click.option(
    "--real-time",
    is_flag=True,
    help="Run clients in processes of their own, in real time, also those that can run in this one.",
)


def protocol_of(client: str | None, protocol: str | None) -> str:
    """The protocol that is asked for, or the only one that a bundled client speaks.

    Raises:
        UsageError: None is asked for, and the client speaks several.
    """
    from conformance.clients.adapters import registry
    from conformance.search.client import REFERENCE

    if client is not None and protocol is None and client != REFERENCE:
        spoken = registry.find(client).protocols
        protocol = spoken[0] if len(spoken) == 1 else None
    if protocol is None:
        raise UsageError("say with --protocol what the client speaks")
    return protocol


def command_of(adapter: str | None) -> list[str] | None:
    """The words of ``--adapter``."""
    return shlex.split(adapter) if adapter is not None else None


def find_own(*workloads: str) -> None:
    """See whether there are such workloads; a user's own lies in the working folder. `UsageError` if not."""
    from conformance.search.random.workloads import find_workload

    sys.path[:0] = [""] if "" not in sys.path else []
    for name in filter(None, workloads):
        find_workload(name)


def opened(path: Path, workload: str) -> tuple[ReplayFile[Any, Any], str, type[SearchClient]]:
    """What a file holds, what one of its findings is called in JSON, and the client that runs it."""
    from conformance.search.random.replay import is_chaos

    if is_chaos(path):
        from conformance.search.random.client import ChaosClient
        from conformance.search.random.replay import load as load_chaos

        find_own(workload)
        return load_chaos(path, workload), "anomaly", ChaosClient
    from conformance.search.systematic.campaign import SweptClient
    from conformance.search.systematic.replay import load

    return load(path), "invariant", SweptClient


def _run(client: Any, file: ReplayFile[Any, Any]) -> Callable[[Any], Case]:
    """Runs a plan of such a file, as it was run when the file was written."""
    return lambda plan: client.run(plan, **file.options)


@click.command("replay")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option(
    "--client", metavar="NAME", shell_complete=client_names, help="Another client than the file names."
)
@click.option("--adapter", metavar="CMD", help="The command of your own adapter.")
@click.option("--mutant", metavar="NAME", help="The reference client with this defect.")
@workload_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def replay_command(
    path: Path, client: str | None, adapter: str | None, mutant: str | None, workload: str, as_json: bool
) -> int:
    """Run a replay file of sweep or chaos again, exactly.

    Exit code 1: it fails again; 0: it does not; 2: the run was another one.
    """
    from conformance.search.replay import replay

    file, called, kind = opened(path, workload)
    own = client is None and adapter is None and mutant is None
    if own and not file.client:
        raise UsageError(f"{UNNAMED}: say which with --client NAME or --adapter CMD")
    name = client or (file.client if adapter is None else None)
    defect = file.mutant if own else mutant
    subject = kind(protocol_of(name, file.protocol), name or "", defect or "", command_of(adapter))
    again = replay(file, _run(subject, file), subject.tries)
    if as_json:
        rows = [{called: name, "detail": text} for name, text in again.found.items()]
        document: dict[str, Any] = {"fails": again.fails, "same": again.same}
        document |= {"verdict": again.word} if again.word else {}
        click.echo(json.dumps(document | {"findings": rows}, indent=1))
    else:
        console = SafeConsole(highlight=False, soft_wrap=True)
        console.print(file.about, markup=False)
        for name, text in again.found.items():
            console.print(f"    {name}: {text}", markup=False)
        instead = f"does not fail: {again.word}" if again.word else "does not fail"
        console.print("fails again" if again.fails else instead, markup=False)
    if again.fails:
        return ExitCode.FAILED
    return 0 if again.same or not own else ExitCode.INCONCLUSIVE


@click.command("shrink")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@workload_option
@real_time_option
def shrink_command(path: Path, workload: str, real_time: bool) -> int:
    """Find the smallest spec or schedule that fails the same.

    It is written beside the replay file FILE.
    """
    from conformance.search.replay import shrunk

    file, _, kind = opened(path, workload)
    if not file.client:
        raise UsageError(f"{UNNAMED}, so it cannot be run")
    subject = kind(file.protocol, file.client, file.mutant)
    quick = kind(file.protocol, file.client, file.mutant, stock_in_memory=not real_time)
    smaller, runs = shrunk(file, _run(subject, file), _run(quick, file) if quick.is_confirmed else None)
    console = SafeConsole(highlight=False, soft_wrap=True)
    if smaller is None:
        console.print("it does not fail any more", markup=False)
        return ExitCode.INCONCLUSIVE
    console.print(f"{smaller.about} after {runs} runs: {smaller.write(path.parent)}", markup=False)
    return 0
