"""The files of one seal, read column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from conformance.pipeline.columns.arrays import Codes, numbers
from conformance.rules.anomalies.anomaly import unknown_in
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

#: Columns with few different texts: Parquet's own dictionaries are taken over.
_REPETITIVE = frozenset(
    ("run", "process", "f", "outcome", "key", "error", "connection", "peer", "tap", "role", "scope", "kind")
) | {"direction", "name"}

#: The part that is all of it.
WHOLE = (0, 1)


class FileSet:
    """The runs of one set of sealed files.

    Args:
        paths: Of each table's file; a path, or one that `filesystem` understands.
        filesystem: Where they lie (``pyarrow.fs``); None for this machine.
        part: Which messages are judged, where that is split: those of part k of n (k, n).
    """

    def __init__(
        self, paths: Mapping[str, str], filesystem: Any = None, part: tuple[int, int] = WHOLE
    ) -> None:
        self.paths = paths
        self.filesystem = filesystem
        self.part = part

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """The rows of the table ``runs``."""
        with self._opened("runs") as file:
            rows: list[dict[str, Any]] = file.read(use_threads=False).to_pylist()
        return rows

    @cached_property
    def faults(self) -> dict[str, list[str]]:
        """By run the names of the faults that touched a frame; runs without any are left out."""
        import pyarrow.compute as pc

        rows = self.read_where("frames", ("run", "fault"), "fault", lambda names: pc.not_equal(names, ""))
        found: dict[str, set[str]] = {}
        rows = rows.unify_dictionaries()  # each row group has its own
        for row in rows.group_by(["run", "fault"]).aggregate([]).to_pylist():
            found.setdefault(row["run"], set()).update(filter(None, row["fault"].split(",")))
        return {run: sorted(names) for run, names in found.items()}

    def read(self, table: str, *columns: str) -> pa.Table:
        """Columns of a table. No threads: the caller spreads the work and has a process for each core."""
        with self._opened(table, columns) as file:
            return file.read(columns=list(columns), use_threads=False)

    @contextmanager
    def column_by_column(self, table: str, *columns: str) -> Iterator[Callable[[str], pa.ChunkedArray]]:
        """Reads each of these columns when it is asked for, so that few are in memory as they were read."""
        with self._opened(table, columns) as file:
            yield lambda name: file.read(columns=[name], use_threads=False)[name]

    def pieces(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table, piece by piece."""
        with self._opened(table) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number, use_threads=False)

    def read_where(
        self, table: str, columns: Sequence[str], by: str, wanted: Callable[[pa.ChunkedArray], Any]
    ) -> pa.Table:
        """The rows for which `wanted` says true of the column `by`.

        Piece by piece, and of a piece without such rows that column only: few of many cost little.
        """
        import pyarrow as pa

        parts = []
        with self._opened(table, columns) as file:
            nothing = file.schema_arrow.empty_table().select(columns)
            for number in range(file.num_row_groups):
                mask = wanted(file.read_row_group(number, columns=[by], use_threads=False)[by])
                if any(chunk.true_count for chunk in mask.chunks):
                    part = file.read_row_group(number, columns=list(columns), use_threads=False)
                    parts.append(part.filter(mask))
        return pa.concat_tables(parts) if parts else nothing

    @contextmanager
    def _opened(self, table: str, columns: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        """The file of a table. Raises `UsageError` if something in it cannot be read while it is open."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(
                self.paths[table],
                filesystem=self.filesystem,
                read_dictionary=[name for name in columns if name in _REPETITIVE],
                page_checksum_verification=True,
            ) as file:
                yield file
        except (OSError, ValueError, pa.ArrowException) as error:
            raise UsageError(f"{self.paths[table]}: cannot be read: {error}") from None

    def rows(self, table: str, places: npt.NDArray[np.int64], *columns: str) -> list[dict[str, Any]]:
        """A few whole rows, by their places in the file."""
        import pyarrow as pa

        taken: list[dict[str, Any]] = self.read(table, *columns).take(pa.array(places)).to_pylist()
        return taken

    def by_run(self, runs: Codes, report: Callable[[dict[str, Any]], Any], default: Any) -> Any:
        """What `tell` says of each run that `runs` names, by code; the last element is `default`."""
        known = {row["run"]: report(row) for row in self.runs}
        return np.array([known.get(name, default) for name in runs.names.to_pylist()] + [default])

    def check(self) -> None:
        """See that the rows are as sealing promises them.

        Raises:
            UsageError: Those of a run do not lie together, or not in order, or its row in ``runs`` is missing
                or has a contract that nobody knows.
        """
        for row in self.runs:
            if problem := unknown_in(row["contract"] or ""):
                raise UsageError(f"{self.paths['runs']}: run {row['run']}: {problem}")
        names = {row["run"] for row in self.runs}
        for table in self.paths.keys() - {"runs"}:
            rows = self.read(table, "run", "seq")
            run, seq = Codes(rows["run"]), numbers(rows["seq"])
            if strange := sorted(set(run.names.to_pylist()) - names):
                raise UsageError(
                    f"{self.paths[table]}: expected rows of the runs in {self.paths['runs']}, got some of "
                    f"the run {strange[0]}"
                )
            changes = np.flatnonzero(run.codes[1:] != run.codes[:-1]) + 1
            apart = len(changes) + bool(len(seq)) != len(run)
            same = np.ones(max(len(seq) - 1, 0), bool)
            same[changes - 1] = False
            back = np.flatnonzero(same & (seq[1:] < seq[:-1]))
            if apart or len(back):
                where = f"row {back[0] + 1}" if len(back) else "a run that comes twice"
                raise UsageError(
                    f"{self.paths[table]}: expected the rows of each run together and in the order of seq, "
                    f"got {where}; seal the journal again, or sort the file by run and seq"
                )
