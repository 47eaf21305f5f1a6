"""Runs on disk, sealed or not, as rows: for `show` and `export`, where all of a run fits into memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fakebrokers.errors import UsageError, instead_of
from fakebrokers.extras import needs
from fakebrokers.journal.convert import upgraded_tables
from fakebrokers.journal.reader import RunLog, read_run, runs_in
from fakebrokers.journal.record import Record, Tap
from fakebrokers.journal.rows import MARK, TABLES, TRACE, FrameRow, MetricRow, OpRow, RunRow, TracedRow

Row = TypeVar("Row", bound=msgspec.Struct)


def stored(place: Path) -> Iterator[RunLog]:
    """The runs at a place, in the order of their names.

    Args:
        place: The folder of a journal, or of a report with one; a run in it (``FOLDER/NAME``, with or without
            what tells it from others of that name); or a file of a run that is not sealed.

    Raises:
        UsageError: There is none, or pyarrow is missing for one that is sealed.
    """
    if place.suffix in (".wire", ".ops") and place.is_file():
        place = place.with_suffix("")
    for folder in (place, place / "journal"):
        if names := _runs(folder):
            yield from (_read(names[run], run) for run in sorted(names))
            return
    names = _runs(place.parent) or _runs(place.parent / "journal")
    if not names:
        raise UsageError(f"{place}: expected the folder of a journal, found no runs there")
    chosen = [run for run in sorted(names) if place.name in (run, run.rpartition(MARK)[0])]
    if not chosen:
        known = sorted({run.rpartition(MARK)[0] or run for run in names})
        raise UsageError(f"{place.parent}: there is no run {place.name!r}{instead_of(place.name, known)}")
    yield from (_read(names[run], run) for run in chosen)


def record_of(row: FrameRow, began_ns: int) -> Record:
    """A row as the journal in memory has it, without the frame; `began_ns` is when its run began."""
    keys: tuple[Any, ...] = row.keys
    if row.key_first is not None:
        keys = tuple(range(row.key_first, row.key_first + row.items))
    return Record(
        row.seq,
        (row.t_ns - began_ns) / 1e9,
        row.connection,
        Tap[row.tap.upper()],
        row.kind,
        row.role,
        keys,
        row.size,
        row.status,
        row.fault,
        note=row.note,
        peer=row.peer,
        envelope=row.envelope,
    )


def began_ns(log: RunLog) -> int:
    """When the first record of a run was written down, on its monotonic clock."""
    tables: Sequence[Sequence[FrameRow | OpRow | MetricRow]] = (log.frames, log.ops, log.metrics)
    return min((rows[0].t_ns for rows in tables if rows), default=0)


def _runs(folder: Path) -> dict[str, Path]:
    """The runs in a folder: identity, and the folder or the file of sealed runs that has it."""
    if not folder.is_dir():
        return {}
    found: dict[str, Path] = {}
    for path in folder.glob("runs-*.parquet"):
        from fakebrokers.journal.seal import sealed_runs

        with needs("suite", "reading a sealed journal"):
            import pyarrow  # noqa: F401
        found |= dict.fromkeys(sealed_runs(path), path)
    return found | dict.fromkeys(runs_in(folder), folder)


def stored_runs(place: Path, runs: Collection[str]) -> Iterator[RunLog]:
    """Some runs of a journal, by their identities; each file is read once, and what is not there is left out.

    Raises:
        UsageError: pyarrow is missing for one that is sealed.
    """
    files: dict[Path, list[str]] = {}
    for run, path in _runs(place).items():
        if run in runs:
            files.setdefault(path, []).append(run)
    for path, chosen in files.items():
        yield from (read_run(path, run) for run in chosen) if path.is_dir() else _sealed(path, chosen)


def _read(place: Path, run: str) -> RunLog:
    return read_run(place, run) if place.is_dir() else next(_sealed(place, [run]))


def _sealed(runs: Path, chosen: Sequence[str]) -> Iterator[RunLog]:
    """Runs in a set of sealed files."""
    import pyarrow.parquet as pq

    from fakebrokers.journal.arrow import version_of

    name = runs.name.removeprefix("runs")
    paths = {table: runs.with_name(f"{table}{name}") for table in TABLES}
    wanted = [("run", "in", list(chosen))]
    tables = {
        table: pq.read_table(path, filters=wanted)
        for table, path in paths.items()
        if table != TRACE or path.exists()
    }
    whole = upgraded_tables(tables, version_of(tables["runs"].schema))

    def rows(table: str, kind: type[Row]) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {run: [] for run in chosen}
        for row in whole[table].to_pylist() if table in whole else ():
            found[row["run"]].append(msgspec.convert(row, kind))
        return found

    about, frames, ops = rows("runs", RunRow), rows("frames", FrameRow), rows("ops", OpRow)
    metrics, traced = rows("metrics", MetricRow), rows(TRACE, TracedRow)
    for run in chosen:
        [row] = about[run]
        yield RunLog(row, frames[run], ops[run], metrics[run], traced[run])
