"""What became of the messages that a finding is about, one row for each message and name of an anomaly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from conformance.pipeline.columns.arrays import NONE
from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Found
from conformance.pipeline.columns.messages import COLUMNS, Fates, OpColumns
from conformance.rules.anomalies.anomaly import NAMES

if TYPE_CHECKING:
    import numpy.typing as npt

#: Messages of a run that are reported for each name of an anomaly.
PER_RUN = 100
#: Findings of other names do not name a message, but a key on the wire, a connection, an operation, a run.
_OF_MESSAGES = frozenset(NAMES) - {"phantom-confirm", "missed-heartbeat-ignored", "stuck-request"}

#: Columns of numbers, 64 bits: how often, the first row of each (`seq`), when (ns), and where in the log.
COUNTS = ("sent", "acked", "failed", "delivered")
SEQS = ("sent_seq", "acked_seq", "failed_seq", "delivered_seq", "last_delivered_seq")
TIMES = ("sent_ns", "acked_ns", "delivered_ns")
OFFSETS = ("lowest", "highest", "acked_offset")


def schema() -> pa.Schema:
    """The columns, in order: run, anomaly, key, value, then the numbers; null where there is nothing."""
    texts = [(name, pa.string()) for name in ("run", "anomaly", "key", "value")]
    numbers = [(name, pa.int64()) for name in (*COUNTS, *SEQS, *TIMES)]
    return pa.schema([*texts, *numbers, *((name, pa.uint64()) for name in OFFSETS)])


def messages_in(files: FileSet, found: Iterable[Found]) -> pa.Table:
    """The table of the messages of these findings, of each run and name the first `PER_RUN`."""
    wanted = _wanted(found)
    if not wanted:
        return schema().empty_table()
    values = pa.array(sorted({value for _, _, value in wanted}), pa.string())
    rows = files.read_where("ops", COLUMNS, "value", lambda column: pc.is_in(column, values))
    fates = Fates(OpColumns(lambda name: rows[name]))
    reported: list[dict[str, Any]] = []
    for i, row in enumerate(fates.where.tolist()):
        ops = fates.ops
        message = (ops.run.text(row) or "", ops.key.text(row) or "", ops.value.text(row) or "")
        numbers = _numbers(fates, i)
        reported += [
            {**dict(zip(("run", "key", "value"), message, strict=True)), "anomaly": name, **numbers}
            for name in wanted.get(message, ())
        ]
    reported.sort(key=lambda row: (row["run"], row["anomaly"], row["sent_seq"] or row["delivered_seq"] or 0))
    return pa.Table.from_pylist(reported, schema())


def _wanted(found: Iterable[Found]) -> Mapping[tuple[str, str, str], list[str]]:
    """Names of anomalies by run, key and value."""
    wanted: dict[tuple[str, str, str], list[str]] = {}
    so_far: dict[tuple[str, str], int] = {}
    for name, run, key, value, *_ in found:
        names = wanted.get((run, key, value), ())
        if name not in _OF_MESSAGES or name in names or so_far.get((run, name), 0) >= PER_RUN:
            continue
        so_far[run, name] = so_far.get((run, name), 0) + 1
        wanted.setdefault((run, key, value), []).append(name)
    return wanted


def _numbers(fates: Fates, i: int) -> dict[str, int | None]:
    reported: dict[str, int | None] = {name: int(getattr(fates, name)[i]) for name in COUNTS}
    for name in (*SEQS, *TIMES):
        reported[name] = _or_none(getattr(fates, name)[i])
    reported["lowest"] = int(fates.lowest[i]) if fates.placed[i] else None
    reported["highest"] = int(fates.highest[i]) if fates.placed[i] else None
    reported["acked_offset"] = int(fates.acked_offset[i]) if fates.has_acked_offset[i] else None
    return reported


def _or_none(value: npt.NDArray[Any]) -> int | None:
    return None if value == NONE else int(value)
