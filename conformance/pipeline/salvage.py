"""What is left of sealed files of which a part cannot be read or judged: all runs but those that it is of.

Sealing writes a checksum with each page, so damaged bytes are noticed, whatever they would mean. A page holds
rows of many runs; its row group says of which.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from conformance.pipeline.places import joined, located, shown
from conformance.rules.anomalies.anomaly import unknown_in
from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class SkippedRun(msgspec.Struct, frozen=True):
    """A run that is not judged.

    Attributes:
        run: Its identity; empty for all runs of a file that does not even say which these are.
        file: Where the problem is.
        problem: Why it cannot be judged, a part of a sentence.
    """

    run: str
    file: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file}: {self.problem}" + (f" (run {self.run})" if self.run else "")


def damage() -> tuple[type[Exception], ...]:
    """What is raised where a file is damaged, or not there."""
    import pyarrow as pa

    return UsageError, OSError, pa.ArrowException, ValueError


def why(error: Exception) -> str:
    """The error in a line."""
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return said if isinstance(error, UsageError) else f"cannot be read: {said}"


def opened(path: str, columns: Sequence[str] = ()) -> pq.ParquetFile:
    """A Parquet file, whose checksums are looked at.

    Args:
        columns: Those that are read with their dictionaries.
    """
    import pyarrow.parquet as pq

    system, inside = located(path)
    return pq.ParquetFile(
        inside, filesystem=system, read_dictionary=list(columns), page_checksum_verification=True
    )


def salvaged(paths: dict[str, str], folder: str) -> tuple[dict[str, str], list[str], list[SkippedRun]]:
    """The runs of a set of sealed files that can be judged; if not all can, they are written into `folder`.

    Returns:
        The paths by table, the runs, and those that are left out.

    Raises:
        UsageError: The file of the runs cannot be read, so nobody knows which there are.
    """
    try:
        with opened(paths["runs"]) as file:
            rows = file.read().to_pylist()
    except damage() as error:
        raise UsageError(f"{shown(paths['runs'])}: {why(error)}") from None
    problems = {row["run"]: unknown_in(row["contract"] or "") for row in rows}
    bad = {
        run: SkippedRun(run, shown(paths["runs"]), problem) for run, problem in problems.items() if problem
    }
    names = [row["run"] for row in rows]
    for table, path in paths.items():
        if table != "runs":
            for run, problem in _damage(path, names):
                bad.setdefault(run, SkippedRun(run, shown(path), problem))
    if not bad:
        return paths, names, []
    kept = [run for run in names if run not in bad]
    for table, path in paths.items() if kept else ():
        _write(path, kept, joined(folder, f"{table}.parquet"))
    return {table: joined(folder, f"{table}.parquet") for table in paths}, kept, list(bad.values())


def _damage(path: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The runs of which rows cannot be read, or that are not among these names; why, of each."""
    try:
        with opened(path) as file:
            for group in range(file.num_row_groups):
                try:
                    found = _whole(file, group)["run"].unique().to_pylist()
                except damage() as error:
                    yield from ((run, why(error)) for run in _runs_of(file, group, names))
                else:
                    yield from (
                        (run, "has rows of a run that is not in the file of the runs")
                        for run in sorted(set(found).difference(names))
                    )
    except damage() as error:
        yield from ((run, why(error)) for run in names)


def _whole(file: pq.ParquetFile, group: int) -> pa.Table:
    rows = file.read_row_group(group, use_threads=False)
    rows.validate(full=True)
    return rows


def _runs_of(file: pq.ParquetFile, group: int, names: Sequence[str]) -> Sequence[str]:
    """The runs that may have rows in a row group of which not all can be read."""
    try:
        found = set(
            file.read_row_group(group, columns=["run"], use_threads=False)["run"].unique().to_pylist()
        )
    except damage():
        place = file.schema_arrow.names.index("run")
        about = file.metadata.row_group(group).column(place).statistics
        if about is None or not about.has_min_max:
            return names
        found = {run for run in names if about.min <= run <= about.max}
    return [run for run in names if run in found] or names


def _write(path: str, runs: Sequence[str], place: str) -> None:
    """The rows of these runs, none of which is in a part that cannot be read."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    system, inside = located(place)
    system.create_dir(posixpath.dirname(inside), recursive=True)
    wanted = pa.array(runs, pa.string())
    with opened(path) as file, pq.ParquetWriter(inside, file.schema_arrow, filesystem=system) as writer:
        for group in range(file.num_row_groups):
            try:
                rows = _whole(file, group)
            except damage():
                continue
            writer.write_table(rows.filter(pc.is_in(rows["run"], wanted)))
