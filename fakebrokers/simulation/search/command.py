"""``fakebrokers simulate``: a whole system under faults that are drawn from seeds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fakebrokers.commands import ExitCode, reserve, seed_range
from fakebrokers.interrupts import interruptible

if TYPE_CHECKING:
    from fakebrokers.simulation.search.campaign import Campaign

FOLDER = Path(".fakebrokers") / "simulate"


@click.command("simulate")
@click.argument("main", metavar="MODULE:FUNCTION")
@click.option("--seeds", metavar="A..B", default="1..100", show_default=True, help="These seeds.")
@click.option(
    "--virtual-minutes",
    type=click.FloatRange(0.01, 1e6),
    default=10.0,
    show_default=True,
    help="Virtual time in which faults take place.",
)
@click.option("--minutes", type=click.FloatRange(0.01, 10_000), help="Stop after so long, in real time.")
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="MODULE:FUNCTION",
    help="Call it with the simulation when everything is healed; may be repeated.",
)
@click.option("--shuffle", is_flag=True, help="Draw the order of tasks that are ready at the same time.")
@click.option("--fault", "faults", multiple=True, metavar="NAME", help="Draw only these; may be repeated.")
@click.option(
    "--realism",
    type=click.Choice(("legal", "environment", "illegal")),
    default="environment",
    show_default=True,
    help="The worst that brokers may do at frames.",
)
@click.option(
    "--coverage",
    multiple=True,
    metavar="MODULE",
    help="Steer by lines of this module or package, and list what no seed reached; may be repeated.",
)
@click.option("--twice", is_flag=True, help="Run every seed twice, not only each hundredth and what fails.")
@click.option(
    "-n", "processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Runs at once."
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run what failed before once more, and show what happens.",
)
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER,
    show_default=True,
    metavar="DIR",
    help="Write failing schedules and their time lines here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def simulate(
    main: str,
    seeds: str,
    virtual_minutes: float,
    minutes: float | None,
    checks: tuple[str, ...],
    shuffle: bool,
    faults: tuple[str, ...],
    realism: str,
    coverage: tuple[str, ...],
    twice: bool,
    processes: int,
    replay: Path | None,
    report: Path,
    as_json: bool,
) -> int:
    """Find the fewest faults that break a system, on virtual time.

    Each seed draws faults.

    MODULE:FUNCTION is an async function that gets the simulation: it makes brokers, starts applications, and
    raises what is wrong at the end, after 'await simulation.healed()'.

    Exit code 1: a run failed; 2: a seed did not repeat.
    """
    from fakebrokers.faults import Realism
    from fakebrokers.simulation.search.campaign import Campaign
    from fakebrokers.simulation.search.draw import kinds
    from fakebrokers.simulation.search.page import show
    from fakebrokers.simulation.search.worker import Setting

    kinds(Realism(realism), faults)
    setting = Setting(
        main, list(checks), virtual_minutes * 60, shuffle, realism, list(faults), list(coverage)
    )
    campaign = Campaign(setting, processes=processes, twice=twice)
    with interruptible() as told:
        try:
            if replay is not None:
                return _replay(campaign, replay, as_json=as_json)
            reserve(report)
            first, last = seed_range(seeds)
            asyncio.run(_search(campaign, range(first, last + 1), minutes and minutes * 60))
        except KeyboardInterrupt:
            if replay is None:
                show(campaign, report, as_json=as_json)
            raise SystemExit(told.exit_code) from None
    show(campaign, report, as_json=as_json)
    if campaign.failed:
        return ExitCode.FAILED
    return ExitCode.INCONCLUSIVE if campaign.differing else ExitCode.OK


async def _search(campaign: Campaign, seeds: range, seconds: float | None) -> None:
    from rich.console import Console

    from fakebrokers.progress import Shown

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with Shown(console, "simulate", len(seeds), seconds) as shown:
        await campaign.go(
            seeds,
            seconds,
            lambda: shown.advance(campaign.runs, campaign.bad),
        )
        await campaign.shrink(shown.say)


def _replay(campaign: Campaign, path: Path, *, as_json: bool) -> int:
    from fakebrokers.simulation.search.page import show_replay
    from fakebrokers.simulation.search.schedule import load

    found = load(path)
    outcome = asyncio.run(campaign.replay(found.schedule))
    show_replay(outcome, found, as_json=as_json)
    if outcome.failure is not None:
        return ExitCode.FAILED
    return ExitCode.INCONCLUSIVE if outcome.differs else ExitCode.OK
