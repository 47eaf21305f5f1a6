"""Sealing: every finished run once, none twice, whatever interrupted it before."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakebrokers.errors import UsageError
from fakebrokers.journal import RunJournal, Tap
from fakebrokers.journal.lines import KIND
from fakebrokers.journal.reader import read_run
from fakebrokers.journal.rows import TABLES

pa = pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
pq = pytest.importorskip("pyarrow.parquet", reason="missing: pyarrow (pip install pyarrow)")
from fakebrokers.journal import seal as sealing  # noqa: E402


def write_run(folder: Path, run: str, events: int = 3, *, close: bool = True) -> RunJournal:
    journal = RunJournal(folder, run, run=run, client="c", seed=5)
    for number in range(events):
        journal.event(float(number), "p", f"e{number}")
    journal._wire.append(
        [(KIND, 0, "Put", "publish"), (0, 9.0, "c1", Tap.IN.value, 0, ["a", "b"], 2, 7, None, "", None)]
    )
    if close:
        journal.close(verdict="pass")
    return journal


def tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {
        table: [
            row
            for path in sorted(folder.glob(f"{table}-*.parquet"))
            for row in pq.read_table(path).to_pylist()
        ]
        for table in TABLES
    }


def test_runs_become_one_set_of_files(tmp_path: Path) -> None:
    logs = {}
    for run in ("a", "b"):
        write_run(tmp_path, run)
        logs[run] = read_run(tmp_path, run)
    assert sealing.seal(tmp_path) == sealing.Sealed(runs=2, rows=10)
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == sorted(TABLES)
    found = tables(tmp_path)
    assert [row["run"] for row in found["runs"]] == ["a", "b"]
    assert found["frames"][0]["keys"] == ["a", "b"] and found["frames"][0]["t_ns"] == 9_000_000_000
    assert [(row["run"], row["seq"], row["f"]) for row in found["ops"]] == [
        (log.run.run, op.seq, op.f) for log in logs.values() for op in log.ops
    ]
    assert sealing.seal(tmp_path) == sealing.Sealed()


def test_a_run_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    busy = write_run(tmp_path, "busy", close=False)
    write_run(tmp_path, "done")
    assert sealing.seal(tmp_path) == sealing.Sealed(runs=1, rows=5, busy=("busy",))
    busy.close()
    assert sealing.seal(tmp_path).runs == 1
    assert [row["run"] for row in tables(tmp_path)["runs"]] == ["done", "busy"] or len(
        tables(tmp_path)["runs"]
    ) == 2


def test_a_killed_run_is_sealed_as_torn(tmp_path: Path) -> None:
    write_run(tmp_path, "r").close()
    path = tmp_path / "r.ops"
    path.write_bytes(path.read_bytes()[:-3])
    sealing.seal(tmp_path)
    (run,) = tables(tmp_path)["runs"]
    assert (run["torn"], run["ended"]) == (True, False)


@pytest.mark.parametrize("after", list(TABLES))
def test_a_seal_that_was_interrupted_neither_loses_nor_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """Fails behind the renaming of each of the files in turn."""
    write_run(tmp_path, "r")
    real = sealing.os.replace

    def fails(source: Path, target: Path) -> None:
        real(source, target)
        if target.name.startswith(after):
            raise OSError("no space left")

    monkeypatch.setattr(sealing.os, "replace", fails)
    with pytest.raises(OSError, match="no space"):
        sealing.seal(tmp_path)
    monkeypatch.undo()
    sealing.seal(tmp_path)
    assert {table: len(rows) for table, rows in tables(tmp_path).items()} == {
        "runs": 1,
        "frames": 1,
        "ops": 3,
        "metrics": 0,
        "trace": 0,
    }
    assert len(list(tmp_path.iterdir())) == len(TABLES)


def test_a_full_batch_starts_new_files_and_no_run_spans_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "ROWS_PER_FILE", 8)
    for run in "abc":
        write_run(tmp_path, run)
    assert sealing.seal(tmp_path).rows == 15
    files = list(tmp_path.glob("ops-*.parquet"))
    assert len(files) == 2
    assert sum(len(set(pq.read_table(path)["run"].to_pylist())) for path in files) == 3


def test_files_that_are_no_journal_stop_it(tmp_path: Path) -> None:
    (tmp_path / "x.ops").write_bytes(b"hello world")
    with pytest.raises(UsageError, match="expected a journal file"):
        sealing.seal(tmp_path)


def test_numbers_of_64_bits_keep_their_value_and_larger_ones_are_named_in_the_note(tmp_path: Path) -> None:
    edges = [7, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    journal = write_run(tmp_path, "huge", events=0, close=False)
    for offset in (*edges, 1 << 64, -1):
        journal.op(1.0, "p", 1, "deliver", "ok", offset=offset, note="n")
    journal.close(verdict="pass")
    sealing.seal(tmp_path)
    rows = tables(tmp_path)["ops"]
    assert [row["offset"] for row in rows] == [*edges, None, None]
    assert [row["note"] for row in rows] == [
        *["n"] * 4,
        "n; offset 18446744073709551616 does not fit",
        "n; offset -1 does not fit",
    ]
    (run,) = tables(tmp_path)["runs"]
    assert (run["ended"], run["torn"], run["verdict"]) == (True, False, "pass")


@pytest.mark.parametrize("rows", [1 << 17, 1])
def test_a_damaged_run_stays_and_the_others_are_sealed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("fakebrokers.journal.seal.ROWS_PER_GROUP", rows)
    for name in ("a", "b", "c"):
        journal = RunJournal(tmp_path, name, run=name)
        for number in range(5):
            journal.op(float(number), "p", number, "publish", "invoke", key="q", value=str(number))
        journal.close()
    damaged = next(path for path in tmp_path.glob("*.ops") if path.name.startswith("b"))
    damaged.write_bytes(b"garbage" * 99)
    with pytest.raises(UsageError):
        sealing.seal(tmp_path)
    assert not list(tmp_path.glob("*.parquet*"))  # nothing half done
    for _ in range(2):
        done = sealing.seal(tmp_path, skip_damaged=True)
        assert list(done.damaged) == [damaged.stem] and damaged.name in done.damaged[damaged.stem]
        assert damaged.exists()
    (path,) = tmp_path.glob("ops-*.parquet")
    assert sorted(set(pq.read_table(path)["run"].to_pylist())) == ["a", "c"]
