"""Which files an analysis reads: each run once, whoever wrote it, in whatever version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.pipeline.schema import files_of
from fakebrokers.journal.seal import arrow_schema, seal

SEALED_BY_1 = Path(__file__).parents[2] / "journal" / "v1-sealed"


def write(folder: Path, name: str = "c@S-1", value: str = "a", run: str | None = None) -> str:
    """A run of one message that arrives, and its identity."""
    journal = RunJournal(folder, name, run=run, client="c", scenario="S-1", contract="exactly-once ordered")
    journal.op(1.0, "p", 1, "publish", "invoke", key="q", value=value)
    journal.op(1.1, "p", 1, "publish", "ok", key="q", value=value)
    journal.op(1.2, "c", None, "deliver", "ok", key="q", value=value, offset=0)
    journal.close(verdict="pass")
    return journal.run


def counted(files: dict[str, list[str]]) -> dict[str, int]:
    return {table: sum(pq.read_metadata(path).num_rows for path in paths) for table, paths in files.items()}


@pytest.mark.parametrize("how", ["same folder", "by another path", "a copy"])
def test_a_run_that_is_given_twice_counts_once(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "j"
    write(folder)
    seal(folder)
    other = {
        "same folder": folder,
        "by another path": tmp_path / "x" / ".." / "j",
        "a copy": tmp_path / "copy",
    }
    (tmp_path / "x").mkdir()
    if how == "a copy":
        shutil.copytree(folder, other[how])
    files = files_of([folder, other[how]], tmp_path / "scratch")
    assert counted(files) == {"runs": 1, "frames": 0, "ops": 3, "metrics": 0}


def test_of_files_that_share_some_runs_each_run_counts_once(tmp_path: Path) -> None:
    run = write(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    other = write(tmp_path / "b", value="b")
    for folder in ("a", "b"):
        seal(tmp_path / folder)
    files = files_of([tmp_path / "a", tmp_path / "b"], tmp_path / "scratch")
    assert counted(files) == {"runs": 2, "frames": 0, "ops": 6, "metrics": 0}
    runs = [row for path in files["runs"] for row in pq.read_table(path)["run"].to_pylist()]
    assert sorted(runs) == sorted([run, other])


def test_runs_of_two_hosts_stay_apart(tmp_path: Path) -> None:
    for host, value in (("h1", "a"), ("h2", "x")):
        write(tmp_path / host, value=value)
        seal(tmp_path / host)
    files = files_of([tmp_path / "h1", tmp_path / "h2"], tmp_path / "scratch")
    ops = pa.concat_tables([pq.read_table(path) for path in files["ops"]]).to_pylist()
    assert len({row["run"] for row in ops}) == 2
    assert {(row["run"], row["value"]) for row in ops} == {(row["run"], row["value"]) for row in ops[::3]}


def test_sealed_journals_of_both_versions_are_analysed_together(tmp_path: Path) -> None:
    write(tmp_path / "new")
    seal(tmp_path / "new")
    shutil.copytree(SEALED_BY_1, tmp_path / "again")
    files = files_of([SEALED_BY_1, tmp_path / "new", tmp_path / "again"], tmp_path / "scratch")
    assert counted(files) == {"runs": 3, "frames": 6, "ops": 10, "metrics": 2}
    for table, paths in files.items():
        assert all(pq.read_schema(path).equals(arrow_schema(table)) for path in paths)


@pytest.mark.parametrize("change", ["version", "column"])
def test_files_that_no_version_wrote_are_refused(tmp_path: Path, change: str) -> None:
    shutil.copytree(SEALED_BY_1, tmp_path / "j")
    (path,) = (tmp_path / "j").glob("ops-*.parquet")
    table = pq.read_table(path)
    if change == "version":
        table = table.replace_schema_metadata({b"fakebrokers.journal.version": b"99"})
    else:
        table = table.drop_columns(["note"])
    pq.write_table(table, path)
    with pytest.raises(UsageError, match="got version 99" if change == "version" else "expected the columns"):
        files_of([tmp_path / "j"], tmp_path / "scratch")
