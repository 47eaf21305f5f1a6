"""Successive deliveries to one reader: `poll-skip` and `nonmonotonic-poll`.

Twin of `conformance.rules.anomalies.data.poll_skip` and ``nonmonotonic_poll``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from conformance.pipeline.columns.arrays import Codes, dense, group, numbers, starts, unsigned
from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Findings
from conformance.rules.anomalies.anomaly import RECONNECTS, REPOSITIONS

if TYPE_CHECKING:
    from conformance.pipeline.columns.arrays import Ints, Mask


class _Ops:
    """The columns of the table ``ops`` about positions."""

    def __init__(self, files: FileSet) -> None:
        rows = files.read("ops", "run", "seq", "process", "f", "outcome", "key", "offset")
        self.run, self.process = Codes(rows["run"]), Codes(rows["process"], empty=True)
        self.f, self.outcome = Codes(rows["f"]), Codes(rows["outcome"])
        self.key, self.seq = Codes(rows["key"], empty=True), numbers(rows["seq"])
        self.offset, self.has_offset = unsigned(rows["offset"])
        placed = self.outcome.are("ok") & self.has_offset
        self.is_delivery = placed & self.f.are("deliver")
        self.is_in_log = placed & self.f.are("publish", "deliver")


def judge(files: FileSet, findings: Findings) -> None:
    """Both of them."""
    ops = _Ops(files)
    before, after = _odd_steps(ops)
    if not len(before):
        return
    log = ops.run.codes * len(ops.key) + ops.key.codes
    rank = _ranks(ops, log, np.unique(log[after]))
    delta = rank[after] - rank[before]
    wrong = np.flatnonzero(delta != 1)
    if not len(wrong):
        return
    values = files.rows("ops", after[wrong], "value")
    for i, row in zip(wrong, values, strict=True):
        by, at = int(delta[i]), after[i]
        findings.add(
            "poll-skip" if by > 1 else "nonmonotonic-poll",
            ops.run.text(at) or "",
            key=ops.key.text(at) or "",
            value=row["value"] or "",
            process=ops.process.text(at) or "",
            seqs=(ops.seq[before[i]], ops.seq[at]),
            detail=f"{by - 1} skipped" if by > 1 else f"{1 - by} back",
        )


def _odd_steps(ops: _Ops) -> tuple[Ints, Ints]:
    """The rows of successive deliveries to one reader that are not from an offset to the next.

    From an offset to the next nothing can be skipped, whatever is in the log: those need no look at it.
    """
    moves = ops.f.are(*REPOSITIONS) & ops.outcome.are("ok", "info")
    rows = np.flatnonzero(ops.is_delivery | moves)
    reader, _ = group(ops.run.codes[rows], ops.process.codes[rows], ops.key.codes[rows])
    order = np.argsort(reader, kind="stable")
    rows, reader = rows[order], reader[order]
    a, b = rows[:-1], rows[1:]
    step = (reader[1:] == reader[:-1]) & ops.is_delivery[a] & ops.is_delivery[b]
    next_one = (ops.offset[b] == ops.offset[a] + np.uint64(1)) & (ops.offset[b] != 0)
    odd = np.flatnonzero(step & ~next_one)
    a, b = a[odd], b[odd]
    kept = ~_reconnected(ops, a, b)
    return a[kept], b[kept]


def _reconnected(ops: _Ops, before: Ints, after: Ints) -> Mask:
    """For each pair of rows of a process, whether it had another connection in between."""
    events = np.flatnonzero(ops.f.are(*RECONNECTS) & ops.outcome.are("event"))
    if not len(events) or not len(before):
        return np.zeros(len(before), bool)
    both = np.concatenate([before, events])
    codes, _ = group(ops.run.codes[both], ops.process.codes[both])
    size = len(ops.seq)  # rows of a run are in order, so their places are times
    mine, theirs = codes[: len(before)], codes[len(before) :]
    at = np.sort(theirs * size + events)
    between: Mask = np.searchsorted(at, mine * size + before) != np.searchsorted(at, mine * size + after)
    return between


def _ranks(ops: _Ops, log: Ints, logs: Ints) -> Ints:
    """For each row of these logs, which of the log's observed offsets it has, counted on over all logs."""
    rows = np.flatnonzero(ops.is_in_log)
    rows = rows[np.isin(log[rows], logs)]
    codes, _ = dense(log[rows])
    order = np.lexsort((ops.offset[rows], codes))
    rows, codes = rows[order], codes[order]
    rank = np.zeros(len(log), np.int64)
    rank[rows] = np.cumsum(starts(codes, ops.offset[rows]))
    return rank
