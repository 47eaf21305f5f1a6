"""A run that cannot be read is named and set aside; the others are judged as if it had never been there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
import pyarrow as pa
import pyarrow.parquet as pq

from conformance.cli.analyze import analyze_journals
from fakebrokers.cli import main
from fakebrokers.errors import UsageError
from fakebrokers.journal import Journal, RunJournal, Tap
from fakebrokers.journal import seal as sealing
from fakebrokers.journal.arrow import VERSION_KEY
from fakebrokers.journal.seal import seal
from tests.toy import FRAMES, Get

RUNS = 12
REQUIRED = "FAKEBROKERS_REQUIRE_SPARK"
SPARK = pytest.param("spark", marks=pytest.mark.full)
ENGINES = ["local", SPARK]


def write(folder: Path, contract: Callable[[int], str] = lambda _: "exactly-once ordered") -> list[str]:
    """Runs in each of which a failed message arrives; their identities."""
    names = []
    for number in range(RUNS):
        journal = RunJournal(folder, f"run-{number}", client="c", scenario="S-1", contract=contract(number))
        wire = Journal(FRAMES)
        wire.sink = journal
        wire.add(0.5, "c1", Tap.IN, Get("x"), 6)
        wire.flush()
        journal.op(1.0, "p", 1, "publish", "invoke", key="q", value=f"{number}-a")
        journal.op(1.1, "p", 1, "publish", "fail", key="q", value=f"{number}-a")
        journal.op(1.2, "c", None, "deliver", "ok", key="q", value=f"{number}-a", offset=1)
        journal.metric(1.4, "loop_lag_ms", 1.0)
        journal.close(verdict="pass")
        names.append(journal.run)
    return names


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed journal with few rows in each group."""
    folder = tmp_path_factory.mktemp("whole") / "journal"
    with pytest.MonkeyPatch.context() as patch:
        write(folder)
        patch.setattr(sealing, "ROWS_PER_GROUP", 7)
        seal(folder)
    return folder


@pytest.fixture
def journal(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "journal"))


def file_of(folder: Path, table: str) -> Path:
    (path,) = folder.glob(f"{table}-*.parquet")
    return path


def names_of(folder: Path) -> list[str]:
    names: list[str] = pq.read_table(file_of(folder, "runs"))["run"].to_pylist()
    return names


def analysed(folder: Path, out: Path, engine: str = "local", *more: Path) -> dict[str, Any]:
    try:
        analyze_journals((folder, *more), out, engine=engine, strict=False)
    except UsageError as error:
        if engine == "spark" and "analysis on Spark needs" in str(error) and not os.environ.get(REQUIRED):
            pytest.skip(str(error))
        raise
    found: dict[str, Any] = json.loads((out / "analysis.json").read_bytes())
    return found


def found_in(document: dict[str, Any]) -> set[str]:
    return {row["run"] for row in document["findings"] if row["name"] == "G1a"}


def action(document: dict[str, Any]) -> set[str]:
    return {row["run"] for row in document["aside"]}


def hurt(path: Path, share: float = 0.4, length: int = 40) -> None:
    content = bytearray(path.read_bytes())
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")  # the footer begins there
    at = 4 + int((end - 4 - length) * share)
    content[at : at + length] = b"\xff" * length
    path.write_bytes(content)


@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("table", ["ops", "frames", "metrics"])
def test_damaged_bytes_cost_the_runs_that_they_are_of(
    journal: Path, tmp_path: Path, table: str, engine: str
) -> None:
    hurt(file_of(journal, table), 0 if table == "frames" else 0.4)  # not all columns of frames are looked at
    document = analysed(journal, tmp_path / "out", engine)
    everybody = set(names_of(journal))
    assert 0 < len(action(document)) <= 8  # those of a group of rows
    assert found_in(document) == everybody - action(document)
    assert {row["file"] for row in document["aside"]} == {str(file_of(journal, table))}
    assert all("cannot be read" in row["problem"] for row in document["aside"])
    assert document["runs"] == RUNS - len(document["aside"])
    assert sum(row["runs"] for row in document["matrix"]) == document["runs"]


@pytest.fixture(scope="module")
def judged(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return analysed(whole, tmp_path_factory.mktemp("judged") / "out")


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_damaged_nothing_false_is_found(
    whole: Path, judged: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("hurt")
    journal = Path(shutil.copytree(whole, folder / "journal"))
    table = data.draw(st.sampled_from(["ops", "frames", "metrics", "runs"]))
    hurt(file_of(journal, table), data.draw(st.floats(0, 1)), data.draw(st.integers(1, 30)))
    try:
        document = analysed(journal, folder / "out")
    except UsageError as error:
        assert str(file_of(journal, table)) in str(error)  # nothing is left
        return
    left = action(document)
    assert document["findings"] == [row for row in judged["findings"] if row["run"] not in left]
    assert document["runs"] == RUNS - len(left)


def version_99(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({VERSION_KEY: b"99"}), path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "garbage": lambda path: path.write_bytes(b"PAR1garbagePAR1"),
    "gone": Path.unlink,
    "newer": version_99,
    "a column less": lambda path: pq.write_table(pq.read_table(path).drop(["seq"]), path),
}


@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.parametrize(
    ("damage", "engine"),
    [*((damage, "local") for damage in DAMAGES), pytest.param("newer", "spark", marks=SPARK.marks)],
)
def test_a_file_that_is_none_costs_its_runs(journal: Path, tmp_path: Path, damage: str, engine: str) -> None:
    path = file_of(journal, "ops")
    DAMAGES[damage](path)
    with pytest.raises(UsageError, match=str(path)):
        analysed(journal, tmp_path / "out", engine)  # nobody is left
    (more,) = write(tmp_path / "more")[:1]
    document = analysed(journal, tmp_path / "out", engine, tmp_path / "more")
    assert action(document) == set(names_of(journal))
    assert document["runs"] == RUNS and more in found_in(document)


@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.parametrize("engine", ENGINES)
def test_a_damaged_run_of_which_there_is_a_copy_is_judged(
    journal: Path, whole: Path, tmp_path: Path, judged: dict[str, Any], engine: str
) -> None:
    hurt(file_of(journal, "ops"))
    document = analysed(journal, tmp_path / "out", engine, whole)
    assert document["findings"] == judged["findings"]
    assert document["aside"] == []


def test_operations_of_a_run_that_nobody_knows_are_told(journal: Path, tmp_path: Path) -> None:
    path = file_of(journal, "runs")
    rows = pq.read_table(path)
    gone = names_of(journal)[3]
    pq.write_table(rows.filter(pa.array([name != gone for name in rows["run"].to_pylist()])), path)
    document = analysed(journal, tmp_path / "out")
    assert [(row["run"], row["file"]) for row in document["aside"]] == [
        (gone, str(file_of(journal, "frames")))
    ]
    assert "has rows of a run that is not in the file of the runs" in document["aside"][0]["problem"]
    assert len(found_in(document)) == RUNS - 1


@pytest.mark.filterwarnings("ignore")  # PySpark leaves sockets to the garbage collector
@pytest.mark.parametrize("engine", ENGINES)
def test_a_contract_that_nobody_knows_is_refused_with_its_file(tmp_path: Path, engine: str) -> None:
    names = write(tmp_path / "j", lambda number: "" if number else "exactly-once nonsense")
    document = analysed(tmp_path / "j", tmp_path / "out", engine)
    (found,) = document["aside"]
    assert (found["run"], found["file"]) == (names[0], str(file_of(tmp_path / "j", "runs")))
    assert "got 'nonsense'" in found["problem"]
    assert found_in(document) == set(names[1:])
    write(tmp_path / "all", lambda _: "nonsense")
    with pytest.raises(UsageError, match=r"runs-.*parquet: .*got 'nonsense'"):
        analysed(tmp_path / "all", tmp_path / "none")


def test_a_damaged_run_that_is_not_sealed_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = write(tmp_path / "j")
    hurt_file = sorted((tmp_path / "j").glob("*.ops"))[3]
    garbage = os.urandom(500)
    hurt_file.write_bytes(garbage)
    arguments = ["analyze", str(tmp_path / "j"), "--out", str(tmp_path / "out"), "--engine", "local"]
    for more, code in (["--strict"], 64), ([], 2), ([], 2):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *more])
        assert ended.value.code == code
        reported = capsys.readouterr()
        assert hurt_file.name in reported.out + reported.err
    assert hurt_file.read_bytes() == garbage
    document = json.loads((tmp_path / "out" / "analysis.json").read_bytes())
    assert len(found_in(document)) == RUNS - 1 == document["runs"]
    assert found_in(document) < set(names)
    assert len(document["aside"]) == 1
