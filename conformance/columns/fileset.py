"""The four files of one seal, read column by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from conformance.columns.arrays import Codes, numbers
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns with few different texts: Parquet's own dictionaries are taken over.
_REPETITIVE = frozenset(
    ("run", "process", "f", "outcome", "key", "error", "connection", "peer", "tap", "role", "scope", "kind")
) | {"direction", "name"}


class FileSet:
    """The runs of one set of sealed files.

    Args:
        paths: Of each table's file; a path, or one that `filesystem` understands.
        filesystem: Where they lie (``pyarrow.fs``); None for this machine.
    """

    def __init__(self, paths: Mapping[str, str], filesystem: Any = None) -> None:
        self.paths = paths
        self.filesystem = filesystem

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """The rows of the table ``runs``."""
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(
            self.paths["runs"], filesystem=self.filesystem, use_threads=False
        ).to_pylist()
        return rows

    def read(self, table: str, *columns: str) -> pa.Table:
        """Columns of a table. No threads: whoever spreads the work has a process for each core."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(
            self.paths[table],
            filesystem=self.filesystem,
            read_dictionary=[name for name in columns if name in _REPETITIVE],
        ) as file:
            return file.read(columns=list(columns), use_threads=False)

    def rows(self, table: str, places: npt.NDArray[np.int64], *columns: str) -> list[dict[str, Any]]:
        """A few whole rows, by their places in the file."""
        import pyarrow as pa

        taken: list[dict[str, Any]] = self.read(table, *columns).take(pa.array(places)).to_pylist()
        return taken

    def by_run(self, runs: Codes, tell: Callable[[dict[str, Any]], Any], default: Any) -> Any:
        """What `tell` says of each run that `runs` names, by code; the last element is `default`."""
        known = {row["run"]: tell(row) for row in self.runs}
        return np.array([known.get(name, default) for name in runs.names.to_pylist()] + [default])

    def check(self) -> None:
        """See that the rows are as sealing promises them.

        Raises:
            UsageError: Those of a run do not lie together, or not in order.
        """
        for table in ("frames", "ops", "metrics"):
            rows = self.read(table, "run", "seq")
            run, seq = Codes(rows["run"]), numbers(rows["seq"])
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
