"""How long the analysis of a journal takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

ROOT = Path(__file__).parents[2]
COMMAND = "import sys; from conformance.cli_analyze import analyze; sys.exit(analyze(standalone_mode=False))"


@pytest.fixture(autouse=True, scope="module")
def _engine() -> None:
    for module in ("numpy", "pyarrow", "pyspark"):
        pytest.importorskip(module, reason="missing: the extra spark (pip install fakebrokers[spark])")


def generate(folder: Path, records: int) -> int:
    from tests.benchmarks.generate import generate as make

    return make(folder, records)


def analyze(journal: Path, out: Path, **env: str) -> dict[str, Any]:
    """The whole command in a process of its own; adds ``wall``, in seconds."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(journal), "--out", str(out), "--json"],
        cwd=ROOT,
        env={**os.environ, "FAKEBROKERS_CLASS_ARCHIVE": "0", **env},
        capture_output=True,
        check=True,
    )
    summary: dict[str, Any] = json.loads(done.stdout)
    return {**summary, "wall": time.monotonic() - begun}


def test_a_hundred_thousand_records(tmp_path: Path) -> None:
    """Under 12 seconds, the start of Spark included, on a machine that has never done it before."""
    generate(tmp_path / "journal", 100_000)
    walls = [analyze(tmp_path / "journal", tmp_path / "out")["wall"] for _ in range(2)]
    print(f"100 k records: {', '.join(f'{wall:.1f}' for wall in walls)} s")
    assert min(walls) < 12


def test_an_archive_of_classes_pays(tmp_path: Path) -> None:
    """The first analysis has it made; then two pairs, without and with it, in turn."""
    generate(tmp_path / "journal", 100_000)
    archive = {"FAKEBROKERS_CLASS_ARCHIVE": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    analyze(tmp_path / "journal", tmp_path / "out", **archive)
    deadline = time.monotonic() + 300
    while not list((tmp_path / "cache").rglob("spark-*.jsa")):
        assert time.monotonic() < deadline, "no archive was made"
        time.sleep(1)
    without, having = (
        min(walls)
        for walls in zip(
            *(
                [analyze(tmp_path / "journal", tmp_path / "out", **env)["wall"] for env in ({}, archive)]
                for _ in range(2)
            ),
            strict=True,
        )
    )
    print(f"100 k records: {without:.1f} s, with an archive of classes {having:.1f} s")
    assert having < without


def test_ten_times_the_records_take_at_most_ten_times_the_time(tmp_path: Path) -> None:
    """Fails if a transform is worse than linear."""
    walls = []
    for records in (1_000_000, 10_000_000):
        assert generate(tmp_path / f"journal-{records}", records) > 0.99 * records
        summary = analyze(tmp_path / f"journal-{records}", tmp_path / "out")
        walls.append(summary["wall"])
        print(f"{summary['rows']:,} records: {summary['wall']:.1f} s")
    assert walls[1] < 10 * walls[0]
