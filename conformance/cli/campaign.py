"""What sweep and chaos print of a campaign."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from conformance.search.campaign import Campaign
from conformance.search.client import SearchClient
from fakebrokers.output import cut

LONGEST = 500  #: characters of what happened; its page and its file have all


def say_why_process(client: SearchClient, console: Console) -> None:
    """A client that could run on virtual time runs in real time."""
    if client.why_process:
        console.print(f"in processes of its own, in real time: {client.why_process}", markup=False)


def shrinking(failures: int, limit_s: float, *, confirms: bool = False) -> str:
    """All runs have ended; what failed is made smaller, which nobody would expect to take minutes."""
    what = f"{failures} failure{'s' * (failures != 1)}"
    limit = f"{limit_s:.0f} seconds" if limit_s < 120 else f"{limit_s / 60:.0f} minutes"
    if confirms:
        return f"confirming {what} in real time, and shrinking: up to about {limit}"
    return f"shrinking {what} in real time: up to about {limit}"


def print_failures(campaign: Campaign[Any, Any, Any], console: Console) -> None:
    """What was found, and how it is had again."""
    for failure in campaign.failures:
        seed = f"seed {failure.seed}: " if failure.seed else ""
        console.print(f"{seed}{failure.replay.about}", markup=False)
        for name, text in failure.replay.found.items():
            console.print(f"    {name}: {cut(text, LONGEST)}", markup=False)
        if failure.steady is False:
            console.print("    not steady: it did not fail each time", markup=False)
        console.print(f"    fakebrokers replay {failure.path}", markup=False)
    if campaign.unconfirmed:
        where = "on virtual time only" if campaign.subject.is_confirmed else "on a busy machine only"
        console.print(f"{where}, so these count for nothing:")
    for one in campaign.unconfirmed.values():
        console.print(f"{one.about}\n    {one.name}: {cut(one.detail, LONGEST)}", markup=False)
        when = "in real time" if campaign.subject.is_confirmed else "run again"
        console.print(f"    {when}: {cut(one.real, LONGEST)}", markup=False)
