"""Who a run is, and journals of older versions."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fakebrokers.journal import RunJournal
from fakebrokers.journal.arrow import arrow_schema, arrow_table, version_of
from fakebrokers.journal.convert import NEW_IN_2_1, identity_of_1, upgraded_lines, upgraded_tables
from fakebrokers.journal.lines import StateLine
from fakebrokers.journal.reader import RunLog, read_run, runs_in
from fakebrokers.journal.rows import TABLES, TRACE

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.pipeline.sources import sources_in
from fakebrokers.journal.seal import seal, sealed_runs

HERE = Path(__file__).parent
#: The tables that old versions had.
OLD = [table for table in TABLES if table != TRACE]
SEALED_BY_1 = HERE / "v1-sealed"


def write(folder: Path, name: str = "c@S-1", value: str = "a", run: str | None = None) -> str:
    """A run of one message that arrives, and its identity."""
    journal = RunJournal(folder, name, run=run, client="c", scenario="S-1", contract="exactly-once ordered")
    journal.op(1.0, "p", 1, "publish", "invoke", key="q", value=value)
    journal.op(1.1, "p", 1, "publish", "ok", key="q", value=value)
    journal.op(1.2, "c", None, "deliver", "ok", key="q", value=value, offset=0)
    journal.close(verdict="pass")
    return journal.run


def sealed(folder: Path) -> dict[str, pa.Table]:
    """All rows of a folder's sealed files, as this version has them."""
    parts = []
    for path in sorted(folder.glob("runs-*.parquet")):
        tables = {table: pq.read_table(path.with_name(path.name.replace("runs", table))) for table in OLD}
        parts.append(upgraded_tables(tables, version_of(tables["runs"].schema)))
    return {table: pa.concat_tables([part[table] for part in parts]) for table in OLD}


def as_tables(log: RunLog) -> dict[str, list[dict[str, Any]]]:
    rows = {"runs": [log.run], "frames": log.frames, "ops": log.ops, "metrics": log.metrics}
    return {
        table: arrow_table(table, [msgspec.structs.astuple(row) for row in part]).to_pylist()  # type: ignore[attr-defined]
        for table, part in rows.items()
    }


# identity


def test_runs_of_one_name_are_different_runs(tmp_path: Path) -> None:
    first, second = write(tmp_path), write(tmp_path)
    assert first != second
    assert {run.partition("~")[0] for run in (first, second)} == {"c@S-1"}
    assert runs_in(tmp_path) == sorted([first, second])
    assert [read_run(tmp_path, run).run.name for run in runs_in(tmp_path)] == ["c@S-1"] * 2


def test_a_second_report_into_one_folder_keeps_both_runs(tmp_path: Path) -> None:
    first = write(tmp_path, value="round 1")
    assert seal(tmp_path).runs == 1
    second = write(tmp_path, value="round 2")
    assert seal(tmp_path).runs == 1
    assert seal(tmp_path).runs == 0
    tables = sealed(tmp_path)
    assert sorted(tables["runs"]["run"].to_pylist()) == sorted([first, second])
    assert set(tables["ops"]["value"].to_pylist()) == {"round 1", "round 2"}


def test_a_run_is_who_it_is_whatever_its_files_are_called(tmp_path: Path) -> None:
    run = write(tmp_path)
    for path in tmp_path.iterdir():
        path.rename(path.with_stem("another"))
    log = read_run(tmp_path, "another")
    assert (log.run.run, log.run.name, log.ops[0].run) == (run, "c@S-1", run)


def test_a_run_whose_ops_are_gone_is_named_by_its_file(tmp_path: Path) -> None:
    run = write(tmp_path)
    (tmp_path / f"{run}.ops").unlink()
    log = read_run(tmp_path, run)
    assert (log.run.run, log.run.name, log.run.ended) == (run, "c@S-1", False)


# version 1


def test_a_sealed_journal_of_version_1_reads_as_its_segments_do() -> None:
    tables = sealed(SEALED_BY_1)
    expected = as_tables(read_run(HERE / "v1", "old"))
    (run,) = expected["runs"]
    for table, rows in tables.items():
        assert rows.schema.equals(arrow_schema(table), check_metadata=True)
        assert [row for row in rows.to_pylist() if row["run"] == run["run"]] == [
            {**row, "key_type": "u64" if row["key_first"] is not None else ""} if table == "frames" else row
            for row in expected[table]
        ]


def test_what_version_1_wrote_otherwise_is_converted() -> None:
    tables = sealed(SEALED_BY_1)
    assert [row["name"] for row in tables["runs"].to_pylist()] == ["old", "older"]
    frames = [row for row in tables["frames"].to_pylist() if row["run"].startswith("older~")]
    assert [(row["kind"], row["key_first"], row["keys"], row["key_type"], row["part"]) for row in frames] == [
        ("address", None, [], "", 0),
        ("Publish", 5, [], "u64", 0),
        ("Confirm", None, ["a", "b"], "", 0),
    ]
    ops = [row for row in tables["ops"].to_pylist() if row["run"].startswith("older~")]
    assert [(row["offset"], row["note"]) for row in ops] == [
        (None, ""),
        (3, ""),
        (3, ""),
        (None, "offset -1 does not fit"),
    ]


def test_an_address_is_no_peer() -> None:
    line, other = StateLine(1.0, "c1", "peer", "tcp:1", ""), StateLine(2.0, "c1", "fin", "", "")
    assert upgraded_lines([line, other], 1) == [StateLine(1.0, "c1", "address", "tcp:1", ""), other]
    assert upgraded_lines([line], 2) == [line]


def test_segments_of_version_1_that_are_sealed_already_are_removed(tmp_path: Path) -> None:
    """A seal of version 1 was killed before it removed them."""
    shutil.copytree(SEALED_BY_1, tmp_path, dirs_exist_ok=True)
    shutil.copytree(HERE / "v1", tmp_path, dirs_exist_ok=True)
    assert seal(tmp_path).runs == 0
    assert runs_in(tmp_path) == []
    (path,) = tmp_path.glob("runs-*.parquet")
    assert [run.partition("~")[0] for run in sealed_runs(path)] == ["old", "older"]


def test_runs_of_version_1_are_told_apart_by_what_is_known_of_them() -> None:
    run = {"name": "c@S-1@1", "started_ms": 5, "client": "c"}
    assert identity_of_1(run) == identity_of_1({**run, "verdict": "pass", "client_version": ""})
    assert identity_of_1(run) != identity_of_1({**run, "started_ms": 6})
    assert identity_of_1(run).startswith("c@S-1@1~")


# what was added to version 2


def test_what_is_known_of_a_judged_run_comes_back(tmp_path: Path) -> None:
    told = {
        "ends": ("c1 client", "c2 broker"),
        "touched": ("c2",),
        "memory_peak": 1 << 33,
        "may": ("waits",),
        "findings": ("beats", "one-loss-event:many_connections"),
    }
    journal = RunJournal(tmp_path, "c@S-1", client="c")
    journal.close(verdict="pass", **told)
    row = read_run(tmp_path, journal.run).run
    assert {name: getattr(row, name) for name in told} == told
    seal(tmp_path)
    [sealed_row] = sealed(tmp_path)["runs"].to_pylist()
    assert {name: sealed_row[name] for name in told} == {
        name: list(value) if isinstance(value, tuple) else value for name, value in told.items()
    }


def test_files_of_version_2_0_are_read_as_if_nothing_were_told(tmp_path: Path) -> None:
    write(tmp_path)
    seal(tmp_path)
    [path] = tmp_path.glob("runs-*.parquet")
    table = pq.read_table(path)
    new = sorted(NEW_IN_2_1["runs"])
    pq.write_table(table.drop_columns(new), path)
    [row] = sealed(tmp_path)["runs"].to_pylist()
    assert {name: row[name] for name in new} == {
        "ends": [],
        "findings": [],
        "may": [],
        "memory_peak": None,
        "touched": [],
    }
    [source] = sources_in([str(tmp_path)], str(tmp_path / "scratch"))
    assert (source.runs, source.rows) == (1, 3)
