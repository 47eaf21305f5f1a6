"""Runs in formats that others read: JSON lines, Parquet, pcapng."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import msgspec

from fakebrokers.extras import needs
from fakebrokers.journal.capture import write_capture
from fakebrokers.journal.reader import RunLog
from fakebrokers.journal.rows import TABLES, FrameRow, MetricRow, OpRow

FORMATS = ("parquet", "jsonl", "pcapng")


def rows_of(log: RunLog) -> list[FrameRow | OpRow | MetricRow]:
    """All rows of a run in the order of events."""
    return sorted([*log.frames, *log.ops, *log.metrics], key=lambda row: row.seq)


def write_jsonl(logs: Iterable[RunLog], file: TextIO) -> int:
    """One JSON object per row, with the name of its ``table``: each run, then what happened in it, in order.

    Returns:
        How many rows.
    """
    names = {kind: table for table, kind in TABLES.items()}
    count = 0
    for log in logs:
        for row in (log.run, *rows_of(log)):
            fields = {"table": names[type(row)], **msgspec.structs.asdict(row)}
            file.write(msgspec.json.encode(fields).decode() + "\n")
            count += 1
    return count


def write_parquet(logs: Iterable[RunLog], folder: Path) -> int:
    """A file for each table in `folder`, ``runs.parquet`` and so on; needs pyarrow.

    Returns:
        How many rows.
    """
    with needs("suite", "writing Parquet"):
        import pyarrow.parquet as pq

    from fakebrokers.journal.arrow import arrow_schema, arrow_table

    folder.mkdir(parents=True, exist_ok=True)
    writers = {table: pq.ParquetWriter(folder / f"{table}.parquet", arrow_schema(table)) for table in TABLES}
    count = 0
    try:
        for log in logs:
            for table, rows in log.tables.items():
                writers[table].write_table(arrow_table(table, [msgspec.structs.astuple(row) for row in rows]))
                count += len(rows)
    finally:
        for writer in writers.values():
            writer.close()
    return count


__all__ = ["FORMATS", "rows_of", "write_capture", "write_jsonl", "write_parquet"]
