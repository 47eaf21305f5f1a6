"""What sweep and chaos print of a campaign."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from conformance.search.campaign import Campaign


def shrinking(failures: int, limit_s: float) -> str:
    """All runs have ended; what failed is made smaller, which nobody would expect to take minutes."""
    what = f"{failures} failure{'s' * (failures != 1)}"
    limit = f"{limit_s:.0f} seconds" if limit_s < 120 else f"{limit_s / 60:.0f} minutes"
    return f"shrinking {what} in real time: up to about {limit}"


def print_failures(campaign: Campaign[Any, Any, Any], console: Console) -> None:
    """What was found, and how it is had again."""
    for failure in campaign.failures:
        seed = f"seed {failure.seed}: " if failure.seed else ""
        console.print(f"{seed}{failure.replay.about}", markup=False)
        for name, text in failure.replay.found.items():
            console.print(f"    {name}: {text}", markup=False)
        if failure.steady is False:
            console.print("    not steady: it did not fail each time", markup=False)
        console.print(f"    fakebrokers replay {failure.path}", markup=False)
