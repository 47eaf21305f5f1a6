"""The protocols whose clients the suite judges: those with a folder in `scenarios`."""

from __future__ import annotations

from pathlib import Path

from fakebrokers.protocol import protocols

SCENARIOS = Path(__file__).parents[1] / "scenarios"

JUDGED = [
    each
    for each in protocols()
    if each.server.startswith("fakebrokers.") and (SCENARIOS / each.folder).is_dir()
]
