"""``--coverage``: what of a client's library was executed, for the commands that run clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from conformance.coverage.meter import CoverageMeter

FOLDER = "coverage"

coverage_option = click.option(
    "--coverage", is_flag=True, help="Write a page of what was never executed of the client's library."
)


def meter_for(client: str | None, report: Path | None) -> CoverageMeter:
    """Measures a bundled client; what it leaves goes into a folder of the report.

    Raises:
        UsageError: It cannot be measured, and why.
    """
    from conformance.clients.adapters.registry import find
    from conformance.coverage.languages import meter_of

    if client is None:
        raise UsageError("--coverage is for bundled clients: their adapter.toml names what is measured")
    folder = report or Path(".fakebrokers", FOLDER, client)
    return meter_of(find(client), folder / FOLDER)


def deliver(meter: CoverageMeter, console: Console) -> dict[str, Any]:
    """Write the page and say what it comes to; the same for JSON."""
    from conformance.coverage.page import sentence, write_coverage

    found = meter.document()
    page = write_coverage(found, meter.folder)
    console.print(f"{sentence(found)}\n    {page}", markup=False, highlight=False)
    names = ("unit", "lines", "executed_lines", "branches", "executed")
    idle = [f"{each.kind} {each.name}" for each in found.idle]
    return {**{name: getattr(found, name) for name in names}, "idle": idle, "page": str(page)}
