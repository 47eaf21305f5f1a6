"""Runs that are in several sets of sealed files: copies of a run, or a run that was cut into pieces.

Sealing writes a run into one set. Who filters, splits or copies sealed files may do otherwise; the checks
need all of a run, so that pieces are put together again, in the order of `seq`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from conformance.pipeline.places import joined, located

if TYPE_CHECKING:
    import pyarrow as pa

#: What of a run stands in one set: rows, lowest and highest `seq`, by table.
_Extent = tuple[tuple[str, int, int, int], ...]


def cut_runs(sets: Sequence[tuple[Mapping[str, str], Sequence[str]]]) -> dict[str, list[Mapping[str, str]]]:
    """Of runs that are in several sets, those of which the sets have different rows, and the sets.

    Args:
        sets: Of each the paths by table, and the runs in it.
    """
    where: dict[str, list[Mapping[str, str]]] = {}
    for paths, runs in sets:
        for run in runs:
            where.setdefault(run, []).append(paths)
    several = {run: found for run, found in where.items() if len(found) > 1}
    extents: dict[str, dict[str, _Extent]] = {}
    for paths in {paths["runs"]: paths for found in several.values() for paths in found}.values():
        extents[paths["runs"]] = _extents(paths)
    return {
        run: found
        for run, found in several.items()
        if len({extents[paths["runs"]].get(run, ()) for paths in found}) > 1
    }


def put_together(cut: Mapping[str, Sequence[Mapping[str, str]]], folder: str) -> dict[str, str]:
    """Write these runs whole, as one set of files in `folder`; returns the paths by table.

    A row that several sets have (by its `seq`) counts once. The row in ``runs`` is that of the set which says
    that the run was closed, if there is one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    system, inside = located(folder)
    system.create_dir(inside, recursive=True)
    tables = dict.fromkeys(table for sets in cut.values() for paths in sets for table in paths)
    for table in tables:
        places = {run: [paths[table] for paths in sets if table in paths] for run, sets in cut.items()}
        whole = [_whole(table, run, found) for run, found in places.items() if found]
        pq.write_table(pa.concat_tables(whole), posixpath.join(inside, f"{table}.parquet"), filesystem=system)
    return {table: joined(folder, f"{table}.parquet") for table in tables}


def _extents(paths: Mapping[str, str]) -> dict[str, _Extent]:
    import pyarrow.parquet as pq

    found: dict[str, _Extent] = {}
    for table in sorted(paths):
        if table == "runs":
            continue
        system, inside = located(paths[table])
        rows = pq.read_table(inside, columns=["run", "seq"], filesystem=system)
        spans = rows.group_by("run").aggregate([("seq", "count"), ("seq", "min"), ("seq", "max")])
        for row in spans.to_pylist():
            extent = (table, row["seq_count"], row["seq_min"], row["seq_max"])
            found[row["run"]] = (*found.get(row["run"], ()), extent)
    return found


def _whole(table: str, run: str, places: Iterable[str]) -> pa.Table:
    """The rows of one run in all of its sets."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = []
    for place in places:
        system, inside = located(place)
        parts.append(pq.read_table(inside, filesystem=system, filters=[("run", "=", run)]))
    rows = pa.concat_tables(parts)
    if table == "runs":
        order = sorted(range(len(rows)), key=lambda i: not rows["ended"][i].as_py())
        return rows.take(order[:1])
    seq = np.asarray(rows["seq"])
    _, first = np.unique(seq, return_index=True)  # sorted by seq; of equal ones the first
    return rows.take(pa.array(first))
