"""From many small files that are cheap to write to a few Parquet files that are cheap to read.

A sealed journal has files ``runs-ID.parquet``, ``frames-ID.parquet``, ``ops-ID.parquet``,
``metrics-ID.parquet`` and ``trace-ID.parquet``. The one of the runs appears last: files without it are
leftovers of a seal that was broken off, and are removed by the next one. A run never spans two files. Needs
pyarrow (extra ``suite``).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from fakebrokers.errors import UsageError
from fakebrokers.extras import needs
from fakebrokers.journal.arrow import arrow_schema, arrow_table, version_of
from fakebrokers.journal.convert import upgraded_tables
from fakebrokers.journal.lines import MAGIC, SCHEMA_VERSION, version_of_file
from fakebrokers.journal.reader import identity, read_run, runs_in, segments_of
from fakebrokers.journal.rows import TABLES
from fakebrokers.journal.segment import is_being_written

if TYPE_CHECKING:
    import pyarrow

ROWS_PER_GROUP = 1 << 17
ROWS_PER_FILE = 1 << 21


class Sealed(msgspec.Struct):
    """What a seal did: runs and rows that it wrote, and runs that are still being written.

    Attributes:
        damaged: Runs that it left as they are, and why: the file, and what is wrong with it.
    """

    runs: int = 0
    rows: int = 0
    busy: tuple[str, ...] = ()
    damaged: dict[str, str] = msgspec.field(default_factory=dict)


def seal(
    folder: Path, progress: Callable[[str], None] | None = None, *, skip_damaged: bool = False
) -> Sealed:
    """Turn every finished run in `folder` into Parquet and remove its own files. Safe to repeat.

    Args:
        progress: Told the name of each run.
        skip_damaged: Leave a run whose files are damaged as it is, and seal the others.

    Raises:
        UsageError: pyarrow is missing, or a file is no journal.
        OSError: The folder cannot be written.
    """
    with needs("suite", "sealing a journal"):
        import numpy  # noqa: F401
        import pyarrow  # noqa: F401
    _tidy(folder)
    runs = runs_in(folder)
    busy = tuple(run for run in runs if any(map(is_being_written, segments_of(folder, run))))
    done = Sealed(busy=busy)
    batch: _Batch | None = None
    for run in runs:
        if run in busy:
            continue
        if progress is not None:
            progress(run)
        batch = batch or _Batch(folder)
        try:
            batch.add(folder, run)
        except UsageError as error:
            if not skip_damaged:
                batch.abandon()
                raise
            done.damaged[run] = str(error)
            continue
        done.runs += 1
        if batch.rows >= ROWS_PER_FILE:
            done.rows += batch.commit()
            batch = None
    if batch is not None:
        done.rows += batch.commit()
    return done


def seal_open(folder: Path, runs: Sequence[str], place: Path) -> int:
    """Write runs that are still being written, as far as they are by now, as sealed files into `place`.

    Args:
        folder: Where they are being written; it stays as it is.
        runs: As `Sealed.busy` names them.
        place: A folder of its own.

    Returns:
        How many of them have not ended.
    """
    copies = place / "copies"
    copies.mkdir(parents=True)
    ended = 0
    batch = _Batch(place)
    for run in runs:
        # The operations first: what a client did is then never there without the frames that came before it.
        for path in reversed(segments_of(folder, run)):
            shutil.copyfile(path, copies / path.name)
        ended += batch.add(copies, run)
        _remove_segments(copies, [run])
    batch.commit()
    copies.rmdir()
    return len(runs) - ended


class _Batch:
    """One set of files in the making."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = uuid4().hex[:12]
        self._runs: list[str] = []
        self._waiting: dict[str, list[pyarrow.Table]] = {table: [] for table in TABLES}
        self._rows_waiting = dict.fromkeys(TABLES, 0)
        self.rows = 0
        self._writers = {table: self._writer(table) for table in TABLES}

    def _writer(self, table: str) -> pyarrow.parquet.ParquetWriter:
        import pyarrow.parquet as pq

        names = TABLES[table].__struct_fields__
        return pq.ParquetWriter(
            self._path(table, ".tmp"),
            arrow_schema(table),
            compression="zstd",
            write_page_checksum=True,
            use_dictionary=_repetitive(table),
            column_encoding={name: "DELTA_BINARY_PACKED" for name in ("seq", "t_ns") if name in names},
        )

    def add(self, folder: Path, stem: str) -> bool:
        """Take in a run; `stem` is how its files are named. Whether it has ended."""
        ended = False
        tables = _readable(folder, stem)
        self._runs.append(stem)
        for table, rows in tables:
            if table == "runs":
                ended = rows["ended"][0].as_py()
            self._waiting[table].append(rows)
            self._rows_waiting[table] += len(rows)
            self.rows += len(rows)
            if self._rows_waiting[table] >= ROWS_PER_GROUP:
                self._write(table)
        return ended

    def abandon(self) -> None:
        """Leave nothing behind."""
        for table, writer in self._writers.items():
            writer.close()
            self._path(table, ".tmp").unlink(missing_ok=True)

    def commit(self) -> int:
        """Let the files appear, if there is a run, then remove what they replace; returns the rows."""
        if not self._runs:
            self.abandon()
            return 0
        for table, writer in self._writers.items():
            self._write(table)
            writer.close()
        for table in reversed(TABLES):  # the runs last
            os.replace(self._path(table, ".tmp"), self._path(table))
        _remove_segments(self._folder, self._runs)
        return self.rows

    def _write(self, table: str) -> None:
        import pyarrow as pa

        rows, self._waiting[table] = self._waiting[table], []
        self._rows_waiting[table] = 0
        if rows:
            self._writers[table].write_table(pa.concat_tables(rows), ROWS_PER_GROUP)

    def _path(self, table: str, suffix: str = "") -> Path:
        return self._folder / f"{table}-{self._name}.parquet{suffix}"


def _readable(folder: Path, stem: str) -> Iterable[tuple[str, pyarrow.Table]]:
    """The same as `_tables`, of which nothing comes if not all can be read."""
    tables, rows = [], 0
    for name, table in (found := _tables(folder, stem)):
        tables.append((name, table))
        rows += len(table)
        if rows > ROWS_PER_GROUP:  # too many to hold: read to the end, then again
            for _ in found:
                pass
            return _tables(folder, stem)
    return tables


def _tables(folder: Path, stem: str) -> Iterator[tuple[str, pyarrow.Table]]:
    """The rows of a run, in tables of bounded size, and at last its row in ``runs``."""
    if _is_of_this_version(folder, stem):
        from fakebrokers.journal.stream import RunStream

        stream = RunStream(folder, stem)
        yield from stream
        yield "runs", arrow_table("runs", [msgspec.structs.astuple(stream.row)])
        return
    for table, rows in read_run(folder, stem).tables.items():
        yield table, arrow_table(table, [msgspec.structs.astuple(row) for row in rows])


def _is_of_this_version(folder: Path, stem: str) -> bool:
    """Whether nothing of a run has to be converted."""
    for path in segments_of(folder, stem):
        with path.open("rb") as file:
            if version_of_file(file.read(len(MAGIC)), str(path)) != SCHEMA_VERSION:
                return False
    return True


def _tidy(folder: Path) -> None:
    """Remove what a seal that was broken off left behind."""
    whole = {path.stem.removeprefix("runs-") for path in folder.glob("runs-*.parquet")}
    for table in TABLES:
        for path in folder.glob(f"{table}-*.parquet*"):
            if path.suffix == ".tmp" or path.stem.removeprefix(f"{table}-") not in whole:
                path.unlink()
    runs = runs_in(folder)
    if runs and whole:
        sealed = {run for name in whole for run in _sealed_in(folder / f"runs-{name}.parquet")}
        _remove_segments(folder, [run for run in runs if _identity(folder, run) in sealed])


def _sealed_in(path: Path) -> list[str]:
    """The runs of a file; none if it is damaged, which its reader will say."""
    import pyarrow as pa

    try:
        return sealed_runs(path)
    except (OSError, ValueError, pa.ArrowException):
        return []


def _identity(folder: Path, run: str) -> str:
    """The identity of a run; empty if its files are damaged, which sealing them will say."""
    try:
        return identity(folder, run)
    except UsageError:
        return ""


def sealed_runs(path: Path) -> list[str]:
    """The identities of the runs in a file ``runs-ID.parquet`` of any version."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    runs: list[str] = upgraded_tables({"runs": table}, version_of(table.schema))["runs"]["run"].to_pylist()
    return runs


def _remove_segments(folder: Path, runs: Iterable[str]) -> None:
    for run in runs:
        for path in segments_of(folder, run):
            path.unlink()


def _repetitive(table: str) -> list[str]:
    """Columns with few different values."""
    unique = {
        "seq",
        "t_ns",
        "t_s",
        "op_id",
        "value",
        "offset",
        "key_first",
        "wire_key",
        "frame",
        "keys",
        "size",
        "data",
    }
    return [name for name in TABLES[table].__struct_fields__ if name not in unique]
