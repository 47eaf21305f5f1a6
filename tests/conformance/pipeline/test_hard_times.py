"""An analysis that is killed goes on where it was; one key with millions of records is judged like many."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.cli.analyze import analyze_journals
from fakebrokers.errors import UsageError
from tests.benchmarks.generate import generate
from tests.eventually import eventually

pytestmark = [
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore"),  # PySpark leaves sockets to the garbage collector
]
REQUIRED = "FAKEBROKERS_REQUIRE_SPARK"
MARK = "FAKEBROKERS_TEST_ANALYSIS"
#: Sets of files, each of which one task judges.
SETS = 30


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    top = tmp_path_factory.mktemp("journals")
    for number in range(SETS):
        generate(top / str(number), 6600, seed=number, messages=100)
        for table in ("runs", "ops", "frames", "metrics"):  # runs of their own
            path = top / str(number) / f"{table}-0.parquet"
            rows = pq.read_table(path)
            place = rows.schema.get_field_index("run")
            names = [f"{number}-{run}" for run in rows["run"].to_pylist()]
            pq.write_table(
                rows.set_column(place, rows.schema.field(place), pa.array(names, pa.string())), path
            )
    return [top / str(number) for number in range(SETS)]


@pytest.fixture(scope="module")
def undisturbed(journals: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return judged(journals, tmp_path_factory.mktemp("undisturbed") / "out", "local")


def judged(journals: list[Path], out: Path, engine: str) -> dict[str, Any]:
    try:
        analyze_journals(journals, out, engine=engine, master="local[2]" if engine == "spark" else None)
    except UsageError as error:
        if "analysis on Spark needs" in str(error) and not os.environ.get(REQUIRED):
            pytest.skip(str(error))
        raise
    document: dict[str, Any] = json.loads((out / "analysis.json").read_bytes())
    return {name: value for name, value in document.items() if name not in ("seconds", "out")}


def begun(journals: list[Path], out: Path, engine: str) -> subprocess.Popen[str]:
    """An analysis in a session of its own, which has judged something by now, and not all."""
    command = [sys.executable, "-m", "fakebrokers", "analyze", *map(str, journals), "--out", str(out)]
    command += ["--engine", engine] + (["--master", "local[1]"] if engine == "spark" else [])
    process = subprocess.Popen(
        command,
        env={**os.environ, MARK: str(out)},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    eventually(lambda: list((out / "parts").glob("*.msgpack")) or process.poll() is not None)
    if process.poll() is not None:
        assert process.stdout is not None
        said = process.stdout.read()
        if "needs PySpark" in said or "needs Java" in said:
            pytest.skip(said)
    return process


def processes_of(out: Path) -> Iterator[int]:
    """All that belong to an analysis, whoever is their parent by now."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={out}".encode() in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)
        except OSError:
            continue


def kill(pids: Iterator[int]) -> int:
    count = 0
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            count += 1
        except ProcessLookupError:
            continue
    return count


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_an_analysis_that_was_killed_goes_on(
    journals: list[Path], undisturbed: dict[str, Any], tmp_path: Path, engine: str
) -> None:
    out = tmp_path / "out"
    for _ in range(3):
        process = begun(journals, out, engine)
        kill(processes_of(out))
        process.communicate()
    assert judged(journals, out, engine) == undisturbed
    for table in ("anomalies", "messages"):
        assert {path.suffix for path in (out / f"{table}.parquet").iterdir()} == {".parquet"}


def test_a_worker_of_spark_that_is_killed_is_told_and_nothing_is_lost(
    journals: list[Path], undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = begun(journals, out, "spark")

    def workers() -> Iterator[int]:
        for pid in processes_of(out):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if any(word in (b"pyspark.daemon", b"pyspark.worker") for word in words):
                yield pid

    killed = kill(workers())
    said, _ = process.communicate()
    assert killed or process.returncode == 0
    assert process.returncode in (0, 64)
    assert "a defect of fakebrokers" not in said
    if process.returncode:
        assert "expected a Spark that does the job" in said
        assert not (out / "analysis.json").exists()
    assert judged(journals, out, "spark") == undisturbed


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize(
    "records", [1_000_000, pytest.param(10_000_000, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])]
)
def test_one_key_with_all_records(tmp_path: Path, records: int, engine: str) -> None:
    """A single run with a single log: nothing of it can be judged side by side but by its messages."""
    written = generate(tmp_path / "journal", records, messages=records * 10 // 33)
    ops = pq.read_table(tmp_path / "journal" / "ops-0.parquet", columns=["f", "value"])
    delivered = ops.filter(ops["f"].to_numpy() == "deliver")["value"].to_numpy()
    sent = set(ops.filter(ops["f"].to_numpy() == "publish")["value"].to_pylist())
    document = judged([tmp_path / "journal"], tmp_path / "out", engine)
    assert (document["runs"], document["rows"]) == (1, written)
    assert document["anomalies"] == {
        "nonmonotonic-poll": len(delivered) - len(set(delivered.tolist())),
        "lost-write": len(sent - set(delivered.tolist())),
    }
    shutil.rmtree(tmp_path / "journal")
