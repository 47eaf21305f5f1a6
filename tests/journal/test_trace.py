"""The trace of a run: what passed, beside what the fake meant."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fakebrokers.journal import RunJournal
from fakebrokers.journal.reader import read_run, segments_of
from fakebrokers.journal.segment import Segment
from fakebrokers.journal.stored import stored

#: Times that nanoseconds would round, bytes that are no text, parts, and what has no connection.
ROWS: list[tuple[float, str, str, Any]] = [
    (0.1 + 0.2, "accept", "c1", ""),
    (1 / 3, "in", "c1", b"\x00\xff\xfe"),
    (1 / 3, "out", "c1", [b"one", b"", b"two"]),
    (2.0, "op", "", "publish"),
    (2.5, "end", "c1", ("broker", "rst")),
    (3.0, "case", "", {"much": "more"}),
]


def written(folder: Path | None, traces: bool = True) -> RunJournal:
    journal = RunJournal(folder, "run", traces=traces, client="c", protocol="pzq")
    journal.op(1.0, "p", 1, "publish", "invoke", key="q", value="a")
    journal.trace(ROWS)
    journal.close()
    return journal


def plain(rows: Any) -> list[tuple[float, str, str, Any]]:
    return [(row.t_s, row.what, row.connection, msgspec.msgpack.decode(row.data)) for row in rows]


EXPECTED = [(t, what, conn, list(data) if type(data) is tuple else data) for t, what, conn, data in ROWS]


def test_a_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    run = written(tmp_path).run
    in_memory = written(None).log().trace
    for rows in (read_run(tmp_path, run).trace, in_memory):
        assert plain(rows) == EXPECTED
        assert [row.seq for row in rows] == [1, 2, 3, 4, 5, 6]


def test_numbers_of_the_other_records_do_not_depend_on_it(tmp_path: Path) -> None:
    with_trace, without = written(tmp_path), written(tmp_path, traces=False)
    found = [read_run(tmp_path, one.run) for one in (with_trace, without)]
    assert [row.seq for row in found[0].ops] == [row.seq for row in found[1].ops] == [1]


def test_what_nobody_asked_for_costs_nothing(tmp_path: Path) -> None:
    journal = RunJournal(tmp_path, "run")

    def rows() -> Any:
        raise AssertionError("asked for")
        yield

    journal.trace(rows())
    journal.close()
    assert [path.suffix for path in segments_of(tmp_path, journal.run)] == [".wire", ".ops"]


def test_sealing_keeps_it_and_removes_the_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    from fakebrokers.journal.seal import seal

    journal = written(tmp_path)
    assert seal(tmp_path).rows == 1 + len(ROWS) + 1  # the op, the trace, the run
    assert segments_of(tmp_path, journal.run) == []
    [log] = stored(tmp_path)
    assert plain(log.trace) == EXPECTED


def test_sealed_files_of_version_2_1_have_none(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    from conformance.cli.analyze import analyze_journals
    from fakebrokers.journal.seal import seal

    written(tmp_path, traces=False)
    seal(tmp_path)
    [path] = tmp_path.glob("trace-*.parquet")
    path.unlink()
    [log] = stored(tmp_path)
    assert (len(log.ops), log.trace) == (1, [])
    summary = analyze_journals([tmp_path], tmp_path / "out", engine="local", rules=True)
    assert (summary["runs"], summary["traces"]) == (1, {"judged": 0, "unread": {}})


def test_a_full_disk_ends_the_run_torn_and_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(self: Segment, lines: Any, real: Any = Segment.append) -> None:
        if self.path.suffix == ".trace":
            raise OSError(errno.ENOSPC, "no space left")
        real(self, lines)

    monkeypatch.setattr(Segment, "append", append)
    journal = written(tmp_path)
    assert "no space left" in str(journal.failure)
    log = read_run(tmp_path, journal.run)
    assert log.run.torn
    assert "no space left" in log.run.note
    assert len(log.ops) == 1


def test_a_trace_that_was_cut_short_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    journal = written(tmp_path)
    path = tmp_path / f"{journal.run}.trace"
    path.write_bytes(path.read_bytes()[:-3])
    assert read_run(tmp_path, journal.run).trace == []
    assert len(read_run(tmp_path, journal.run).ops) == 1
