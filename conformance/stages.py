"""What the main job does besides scenarios: fixed lists of generated runs on all clients, side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from conformance.clients.adapters.registry import Client
from conformance.coverage.meter import CoverageMeter
from conformance.search.fixed import KNOWN, LANES, LONGEST_S, Fixed, Swept, run_lists
from conformance.search.random import fixed as chaos
from conformance.search.systematic import fixed as sweep
from conformance.search.systematic.fixed import SPECS
from fakebrokers.errors import UsageError

FOLDER = Path("ci/known")  #: for each client its list, and what it is known to get wrong


NO_METERS: Mapping[str, CoverageMeter] = {}


class JobStage(NamedTuple):
    """One of them.

    Attributes:
        about: What it is, for people.
        unit: What its lists hold.
        suffix: Of a client's list in `FOLDER`.
        make: The list of a client: client, protocol, folder of the lists, folder of the report.
        lanes, longest_s: See `conformance.search.fixed.run_lists`.
    """

    name: str
    about: str
    unit: str
    suffix: str
    make: type[sweep.Listed] | type[chaos.FixedSeeds]
    lanes: int
    longest_s: float


SWEEP = JobStage(
    "sweep",
    "generated faults, judged by rules that always hold",
    "specs",
    SPECS,
    sweep.Listed,
    LANES,
    LONGEST_S,
)
CHAOS = JobStage(
    "chaos",
    "random workloads under random faults",
    "schedules",
    KNOWN,
    chaos.FixedSeeds,
    chaos.LANES,
    chaos.LONGEST_S,
)
STAGES = (SWEEP, CHAOS)


def run_stage(
    stage: JobStage,
    clients: Sequence[Client],
    report: Path,
    console: Console,
    refused: list[str],
    *,
    real_time: bool = False,
    meters: Mapping[str, CoverageMeter] = NO_METERS,
) -> list[Swept]:
    """Run the lists of all clients that can run here.

    Args:
        report: The folder of the report; pages are written into a folder of it.
        refused: Gets a sentence for each list that cannot be run.
        real_time: No client runs in this process.
        meters: Measure what is executed of clients that do, by their names.
    """
    lists: list[Fixed[Any, Any]] = []
    for client in clients:
        if not client.runnable or not (FOLDER / f"{client.name}{stage.suffix}").exists():
            continue
        try:
            made = stage.make(client, client.protocols[0], FOLDER, report)
        except UsageError as error:
            refused.append(f"{stage.name} of {client.name}: {error}")
            continue
        lists += [made] if made.specs else []
    if not lists:
        return []
    console.print(f"[bold]{stage.name}[/]: {stage.about}", highlight=False)
    begun = time.monotonic()
    for each in lists:
        if not real_time:
            each.run_here(meters.get(each.name))
    asyncio.run(run_lists(lists, stage.lanes, stage.longest_s))
    found = [each.found for each in lists]
    _report(stage, found, time.monotonic() - begun, console)
    return found


def _report(stage: JobStage, found: Sequence[Swept], seconds: float, console: Console) -> None:
    done = sum(each.specs - each.left_out for each in found)
    new = sum(len(each.new) for each in found)
    known = sum(count for each in found for _, count in each.causes)
    console.print(
        f"   {done} {stage.unit} on {len(found)} clients in {seconds:.0f} s: "
        f"{new} new findings, {known} as expected",
        highlight=False,
    )
    if here := sum(each.here for each in found):
        console.print(f"   {here} of them on virtual time, the others in processes", highlight=False)
    for each in found:
        for row in each.new:
            console.print(f"   {each.client}: {row.invariant}: {row.detail} ({row.spec})", markup=False)
