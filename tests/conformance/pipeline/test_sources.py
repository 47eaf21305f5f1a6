"""Which files an analysis reads: each run once, whoever wrote it, in whatever version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.pipeline.places import joined, shown
from conformance.pipeline.places import write as places_write
from conformance.pipeline.sources import SealedFiles, sources_in
from fakebrokers.journal.arrow import arrow_schema
from fakebrokers.journal.rows import TABLES
from fakebrokers.journal.seal import seal
from tests.marked import PASSWORD

SEALED_BY_1 = Path(__file__).parents[2] / "journal" / "v1-sealed"


def write(folder: Path, name: str = "c@S-1", value: str = "a", run: str | None = None) -> str:
    """A run of one message that arrives, and its identity."""
    journal = RunJournal(folder, name, run=run, client="c", scenario="S-1", contract="exactly-once ordered")
    journal.op(1.0, "p", 1, "publish", "invoke", key="q", value=value)
    journal.op(1.1, "p", 1, "publish", "ok", key="q", value=value)
    journal.op(1.2, "c", None, "deliver", "ok", key="q", value=value, offset=0)
    journal.close(verdict="pass")
    return journal.run


def read(sources: list[SealedFiles], table: str) -> pa.Table:
    """The rows; old files have no trace."""
    found = [pq.read_table(source.paths[table]) for source in sources if table in source.paths]
    return pa.concat_tables([arrow_schema(table).empty_table(), *found])


def counted(sources: list[SealedFiles]) -> dict[str, int]:
    lengths = {table: len(read(sources, table)) for table in TABLES}
    assert sum(source.runs for source in sources) == lengths["runs"]
    assert sum(source.rows for source in sources) == sum(lengths.values()) - lengths["runs"]
    return lengths


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
    files = sources_in([str(folder), str(other[how])], str(tmp_path / "scratch"))
    assert counted(files) == {"runs": 1, "frames": 0, "ops": 3, "metrics": 0, "trace": 0}


def test_of_files_that_share_some_runs_each_run_counts_once(tmp_path: Path) -> None:
    run = write(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    other = write(tmp_path / "b", value="b")
    for folder in ("a", "b"):
        seal(tmp_path / folder)
    files = sources_in([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "scratch"))
    assert counted(files) == {"runs": 2, "frames": 0, "ops": 6, "metrics": 0, "trace": 0}
    assert sorted(read(files, "runs")["run"].to_pylist()) == sorted([run, other])


@pytest.mark.parametrize("overlap", [0, 1])
def test_a_run_that_was_cut_into_pieces_is_judged_whole(tmp_path: Path, overlap: int) -> None:
    """The message is acknowledged in one piece and delivered in the other."""
    run, other = write(tmp_path / "a"), write(tmp_path / "a", name="other", value="b")
    seal(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (first,), (second,) = ((tmp_path / name).glob("ops-*.parquet") for name in "ab")
    rows = pq.read_table(first)
    mine, others = rows.filter(pc.equal(rows["run"], run)), rows.filter(pc.equal(rows["run"], other))
    pq.write_table(pa.concat_tables([mine.slice(1), others]), first)
    pq.write_table(pa.concat_tables([mine.slice(0, 1 + overlap), others]), second)
    (runs,) = (tmp_path / "a").glob("runs-*.parquet")
    table = pq.read_table(runs)
    ended = pa.array([name != run for name in table["run"].to_pylist()])
    pq.write_table(table.set_column(table.schema.get_field_index("ended"), "ended", ended), runs)
    files = sources_in([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "scratch"))
    assert counted(files) == {"runs": 2, "frames": 0, "ops": 6, "metrics": 0, "trace": 0}
    whole = read(files, "ops").filter(pc.equal(read(files, "ops")["run"], run))
    assert whole.sort_by("seq") == whole and whole["seq"].to_pylist() == mine["seq"].to_pylist()
    assert all(read(files, "runs")["ended"].to_pylist())


def test_runs_of_two_hosts_stay_apart(tmp_path: Path) -> None:
    for host, value in (("h1", "a"), ("h2", "x")):
        write(tmp_path / host, value=value)
        seal(tmp_path / host)
    files = sources_in([str(tmp_path / "h1"), str(tmp_path / "h2")], str(tmp_path / "scratch"))
    ops = read(files, "ops").to_pylist()
    assert len({row["run"] for row in ops}) == 2
    assert {(row["run"], row["value"]) for row in ops} == {(row["run"], row["value"]) for row in ops[::3]}


def test_sealed_journals_of_both_versions_are_analysed_together(tmp_path: Path) -> None:
    write(tmp_path / "new")
    seal(tmp_path / "new")
    shutil.copytree(SEALED_BY_1, tmp_path / "again")
    files = sources_in(
        [str(SEALED_BY_1), str(tmp_path / "new"), str(tmp_path / "again")], str(tmp_path / "scratch")
    )
    assert counted(files) == {"runs": 3, "frames": 6, "ops": 10, "metrics": 2, "trace": 0}
    for source in files:
        assert all(pq.read_schema(path).equals(arrow_schema(table)) for table, path in source.paths.items())


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
        sources_in([str(tmp_path / "j")], str(tmp_path / "scratch"))


def test_what_a_uri_says_of_its_server_stays_behind_the_path() -> None:
    place = "s3://bucket/a?endpoint_override=localhost:9000"
    assert joined(place, "b", "c.parquet") == "s3://bucket/a/b/c.parquet?endpoint_override=localhost:9000"
    assert joined("hdfs://host/a", "b") == "hdfs://host/a/b"


def test_names_in_a_uri_are_names(tmp_path: Path) -> None:
    name = "a b%20#?c.bin"
    place = joined(tmp_path.as_uri(), name)
    places_write(place, b"x")
    assert (tmp_path / name).read_bytes() == b"x"


def test_no_text_has_the_password_of_a_uri() -> None:
    assert shown(f"s3://key:se@{PASSWORD}@bucket/a?region=x") == "s3://key:***@bucket/a?region=x"
    assert shown("s3://bucket/a:b@c") == "s3://bucket/a:b@c"
