"""What is printed of a search, and the same as a JSON document."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fakebrokers.output import plain
from fakebrokers.simulation.search.lines import ranges
from fakebrokers.simulation.search.run import Outcome
from fakebrokers.simulation.search.schedule import Found, words_of

if TYPE_CHECKING:
    from fakebrokers.simulation.search.campaign import Campaign, Failed
    from fakebrokers.simulation.search.worker import Setting

#: Lines of the time line that are printed at most; all of it is in the folder.
SHOWN = 40
#: Those around each fault, and the last ones.
AROUND, LAST = 2, 6


def show(campaign: Campaign, folder: Path, *, as_json: bool) -> None:
    """Write what failed into the folder, and print it."""
    campaign.write(folder)
    if as_json:
        click.echo(json.dumps(_document(campaign), indent=1))
        return
    for failed in campaign.failed.values():
        _show_failed(campaign.setting, failed)
    for seed, differs in campaign.differing.items():
        click.echo(plain(f"seed {seed} does not repeat; {differs}", lines=True))
    if campaign.hash_matters:
        click.echo("the order of sets of strings changes what happens: tests need PYTHONHASHSEED to repeat")
    _show_lines(campaign)
    words = [f"{campaign.bad} failed"]
    words += [f"{len(campaign.differing)} did not repeat"] if campaign.differing else []
    rate = campaign.runs / campaign.cpu_s if campaign.cpu_s else 0.0
    took = f"{campaign.cpu_s:.0f} s of the processor ({rate:.0f} a second)"
    click.echo(f"{campaign.runs} runs in {took}: {', '.join(words)}")


def _show_lines(campaign: Campaign) -> None:
    """Which lines of the application no seed has reached."""
    missed = campaign.missed()
    total, count = (sum(map(len, each.values())) for each in (campaign.lines, missed))
    if campaign.lines:
        click.echo(f"lines that were reached: {total - count} of {total}{'; never:' if count else ''}")
    for file, lines in missed.items():
        if lines:
            click.echo(plain(f"  {os.path.relpath(file)}: {ranges(lines)}"))


def show_replay(outcome: Outcome, found: Found, *, as_json: bool) -> None:
    """Print how a replay went.

    Args:
        found: The file that said what to run.
    """
    fails, same = outcome.failure is not None, outcome.digest == found.digest
    if as_json:
        document = {"fails": fails, "same": same, "differs": outcome.differs, **_told(outcome)}
        click.echo(json.dumps(document, indent=1))
        return
    _show_story(outcome)
    click.echo("fails again" if fails else "does not fail")
    if not same:
        click.echo("it went another way than when the file was written")
    if outcome.differs:
        click.echo(plain(f"it does not repeat; {outcome.differs}", lines=True))


def _show_failed(setting: Setting, failed: Failed) -> None:
    outcome = failed.outcome
    others = len(failed.seeds) - 1
    also = f", and {others} more" if others else ""
    click.echo(plain(f"seed {outcome.schedule.seed}{also}: {failed.name}"))
    _show_story(outcome)
    if not failed.steady:
        click.echo("not steady: it did not fail each time")
    words = ["fakebrokers", "simulate", setting.main, "--replay", str(failed.path)]
    words += [word for check in setting.checks for word in ("--check", check)]
    click.echo(f"    {shlex.join(words)}\n")


def _show_story(outcome: Outcome) -> None:
    steps = outcome.schedule.steps
    shuffled = ", tasks shuffled" if outcome.schedule.shuffle else ""
    count = f"{len(steps)} fault{'s' * (len(steps) != 1)}" if steps else "without any fault"
    click.echo(f"  {count}{shuffled}")
    for step in steps:
        click.echo(plain(f"    {step.name}: {words_of(step)}"))
    for line in excerpt(outcome.story):
        click.echo(plain(f"  {line}"))
    if outcome.failure is not None:
        click.echo(plain(f"  {outcome.failure.text}", lines=True))


def excerpt(story: Sequence[str]) -> list[str]:
    """The lines around faults and applications, and the last ones."""
    shown: set[int] = set(range(max(0, len(story) - LAST), len(story)))
    marked = [number for number, line in enumerate(story) if "[fault: " in line or " c" not in line[14:36]]
    for number in marked:
        shown.update(range(number - AROUND, number + AROUND + 1))
    chosen = sorted(number for number in shown if 0 <= number < len(story))
    if len(chosen) > SHOWN:
        chosen = chosen[: SHOWN // 2] + chosen[-SHOWN // 2 :]
    lines: list[str] = []
    for before, number in zip([-1, *chosen], chosen, strict=False):
        if number > before + 1:
            lines.append(f"... {number - before - 1} more")
        lines.append(story[number])
    return lines


def _document(campaign: Campaign) -> dict[str, Any]:
    return {
        "runs": campaign.runs,
        "cpu_seconds": round(campaign.cpu_s, 1),
        "shrinking_cpu_seconds": round(campaign.shrinking_cpu_s, 1),
        "failed": [
            {
                "name": each.name,
                "seeds": each.seeds,
                "steady": each.steady,
                "faults_drawn": each.was,
                "replay": str(each.path),
                **_told(each.outcome),
            }
            for each in campaign.failed.values()
        ],
        "hash_matters": campaign.hash_matters,
        "coverage": {
            os.path.relpath(file): {"lines": len(campaign.lines[file]), "missed": lines}
            for file, lines in campaign.missed().items()
        },
        "not_repeated": [{"seed": seed, "differs": text} for seed, text in campaign.differing.items()],
    }


def _told(outcome: Outcome) -> dict[str, Any]:
    failure = outcome.failure
    return {
        "schedule": msgspec.to_builtins(outcome.schedule),
        "failure": None if failure is None else failure.text,
        "trace": "" if failure is None else failure.trace,
        "output": outcome.output,
        "time_line": outcome.story,
        "virtual_seconds": outcome.seconds,
    }
