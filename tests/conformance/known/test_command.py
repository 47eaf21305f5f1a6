"""``fakebrokers known``: old files become a new one that says the same."""

from __future__ import annotations

from pathlib import Path

import msgspec
from click.testing import CliRunner, Result

from conformance.cli.known import known_command
from conformance.known.defects import Part
from conformance.known.files import load, read
from conformance.results import Results, Verdict
from conformance.results import RowResult as Row
from fakebrokers.errors import ResourceError, UsageError

SUITE = """
version = 1
client = "toy"

[[known]]
id = "RMQS-6.06"
protocol = "rabbitmq-stream"
criterion = "in-time"
sometimes = true
cause = "the reader dies"
"""
SWEPT = """
version = 1
client = "toy"

[[known]]
invariant = "lives"
severity = "high"
cause = "the reader dies"
"""
SHAKEN = 'version = 1\nclient = "toy"\nsweep = "swept.toml"\nseeds = ["7"]\n'
MERGED = """\
# What toy is known to get wrong, each cause once.

version = 2
client = "toy"
protocol = "rabbitmq-stream"
seeds = ["7"]

[[defect]]
id = "reader-dies"
cause = "the reader dies"
severity = "high"
sometimes = ["RMQS-6.06 in-time"]
generated = ["lives"]
"""


def known(*arguments: object) -> Result:
    return CliRunner().invoke(known_command, [str(each) for each in arguments])


def test_files_of_suite_sweep_and_chaos_become_one(tmp_path: Path) -> None:
    for name, text in {"suite": SUITE, "swept": SWEPT, "shaken": SHAKEN}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    files = [tmp_path / f"{name}.toml" for name in ("suite", "swept", "shaken")]
    done = known(*files)
    assert done.stdout == MERGED
    assert f"{files[0]}: 1 rows of the suite, 0 of generated runs" in done.stderr
    assert known(*files, "--write", files[0]).exit_code == 0  # onto one that it reads
    assert files[0].read_text() == MERGED
    assert known(files[0]).stdout == MERGED
    warned: list[str] = []
    assert all(load(files[0], part, warned.append, "rabbitmq-stream").client == "toy" for part in Part)
    assert warned == []


def test_a_run_is_put_into_a_file_that_need_not_be_there(tmp_path: Path) -> None:
    row = Row("RMQS-6.06", "rabbitmq-stream", "", "MUST", Verdict.FAIL, criterion="in-time", reason="late")
    results = Results("toy", "1.0", "0.3", 0, "2026-01-01T00:00:00Z", 1.0, (row,))
    (tmp_path / "results.json").write_bytes(msgspec.json.encode(results))
    path = tmp_path / "known.toml"
    assert known("--results", tmp_path, "--write", path).exit_code == 0
    (made,) = read(path).rows
    assert (made.id, made.criteria, made.cause) == ("RMQS-6.06", ("in-time",), "not looked into: late")
    before = path.read_text()
    known(path, "--results", tmp_path / "results.json", "--write", path)
    assert path.read_text() == before


def test_it_needs_something_to_read_and_somewhere_to_write(tmp_path: Path) -> None:
    assert isinstance(known().exception, UsageError)
    (tmp_path / "suite.toml").write_text(SUITE)
    nowhere = tmp_path / "no" / "known.toml"
    assert isinstance(known(tmp_path / "suite.toml", "--write", nowhere).exception, ResourceError)
