"""What became of each message: `lost-write`, `unseen`, `duplicate`, `G1a`, and what the client waited.

Twin of `data` and `history` in `conformance.rules.anomalies`. A hot run is judged in parts, by the value of
the message: nothing but the readers of a log looks at messages of other parts, see `_complete`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.pipeline.columns.arrays import (
    Codes,
    bounds,
    first,
    group,
    last,
    least,
    numbers,
    parts_of,
    unsigned,
)
from conformance.pipeline.columns.fileset import WHOLE, FileSet
from conformance.pipeline.columns.findings import Findings

if TYPE_CHECKING:
    from conformance.pipeline.columns.arrays import Ints, Mask


#: What is read of the table ``ops``.
COLUMNS = ("run", "seq", "t_ns", "process", "f", "outcome", "key", "value", "offset")


class OpColumns:
    """The columns of the table ``ops`` about messages.

    Args:
        column: Reads one of `COLUMNS`.
        part: The messages of which `value` is filled.
    """

    def __init__(self, column: Callable[[str], pa.ChunkedArray], part: tuple[int, int] = WHOLE) -> None:
        self.run, self.process = Codes(column("run")), Codes(column("process"), empty=True)
        self.f, self.outcome = Codes(column("f")), Codes(column("outcome"))
        self.key, self.texts = Codes(column("key"), empty=True), column("value")
        self.value = self._values(part)
        self.seq, self.t_ns = numbers(column("seq")), numbers(column("t_ns"))
        self.offset, self.has_offset = unsigned(column("offset"))
        self.ok = self.outcome.are("ok")
        self.is_publish, self.is_delivery = self.f.are("publish"), self.f.are("deliver")
        #: The log of each row.
        self.log = self.run.codes * len(self.key) + self.key.codes

    def _values(self, part: tuple[int, int]) -> Codes:
        if part == WHOLE:
            return Codes(self.texts)
        which, parts = part
        return self._only(parts_of(self.texts, parts) == which)

    def _only(self, mask: Mask) -> Codes:
        return Codes(pc.if_else(pa.array(mask), self.texts, pa.scalar(None, pa.string())))

    def with_the_values_of(self, mask: Mask) -> OpColumns:
        """The same rows, with only the messages that one of these rows names."""
        names = pc.unique(self.texts.filter(pa.array(mask)))
        other = copy(self)
        other.value = self._only(np.asarray(pc.is_in(self.texts, pc.drop_null(names))))
        return other


class Fates:
    """One element for each message of a log, as `conformance.rules.anomalies.history.Fate` has it."""

    def __init__(self, ops: OpColumns) -> None:
        publishes = ops.is_publish
        self.ops = ops
        self.rows = np.flatnonzero((publishes | ops.is_delivery) & (ops.value.codes >= 0))
        self.codes, self.many = group(
            ops.run.codes[self.rows], ops.key.codes[self.rows], ops.value.codes[self.rows]
        )
        sent, acked, failed, delivered = (
            self._of(mask)
            for mask in (
                publishes & ops.outcome.are("invoke"),
                publishes & ops.ok,
                publishes & ops.outcome.are("fail"),
                ops.is_delivery & ops.ok,
            )
        )
        self.sent, self.acked, self.failed, self.delivered = (
            np.bincount(codes, minlength=self.many) for codes, _ in (sent, acked, failed, delivered)
        )
        self.sent_seq, self.acked_seq, self.failed_seq, self.delivered_seq = (
            first(self.many, codes, ops.seq[rows]) for codes, rows in (sent, acked, failed, delivered)
        )
        self.last_delivered_seq = last(self.many, delivered[0], ops.seq[delivered[1]])
        self.sent_ns, self.acked_ns, self.delivered_ns = (
            least(self.many, codes, ops.t_ns[rows]) for codes, rows in (sent, acked, delivered)
        )
        both = [np.concatenate(pair) for pair in zip(acked, delivered, strict=True)]
        self.lowest, self.highest, self.placed = self._offsets(both[0], both[1])
        _, self.acked_offset, self.has_acked_offset = self._offsets(*acked)
        #: A row that names the message.
        self.where = np.empty(self.many, np.int64)
        self.where[self.codes] = self.rows

    def _of(self, mask: Mask) -> tuple[Ints, Ints]:
        """The messages and the rows where `mask` holds."""
        hit = np.flatnonzero(mask[self.rows])
        return self.codes[hit], self.rows[hit]

    def _offsets(self, codes: Ints, rows: Ints) -> tuple[Ints, Ints, Mask]:
        there = self.ops.has_offset[rows]
        low, high, placed = bounds(self.many, codes[there], self.ops.offset[rows[there]])
        return low, high, placed  # type: ignore[return-value]

    def add(
        self, findings: Findings, name: str, message: int, seqs: tuple[int, ...], detail: str, who: str = ""
    ) -> None:
        """A finding about one message."""
        ops, row = self.ops, self.where[message]
        findings.add(
            name,
            ops.run.text(row) or "",
            key=ops.key.text(row) or "",
            value=ops.value.text(row) or "",
            process=who,
            seqs=seqs,
            detail=detail,
        )


class _Readers:
    """One element for each reader of the logs in `logs`, ordered by log."""

    def __init__(self, fates: Fates, logs: Ints) -> None:
        ops = fates.ops
        rows = np.flatnonzero(ops.ok & (ops.is_delivery | ops.f.are("subscribe")))
        rows = rows[np.isin(ops.log[rows], logs)]
        codes, many = group(ops.log[rows], ops.process.codes[rows])
        where = np.empty(many, np.int64)
        where[codes] = rows
        order = np.argsort(ops.log[where], kind="stable")
        place = np.empty(many, np.int64)
        place[order] = np.arange(many)
        self._rows, self._codes = rows, place[codes]
        self.log = ops.log[where][order]
        self.process = ops.process.codes[where][order]
        self.first_seq = first(many, self._codes, ops.seq[rows])
        self.newest_sent = np.zeros(many, np.int64)
        self.meet(fates)
        placed = ops.is_delivery[rows] & ops.has_offset[rows] & np.asarray(ops.texts.is_valid())[rows]
        self.lowest, self.highest, self.placed = bounds(many, self._codes[placed], ops.offset[rows[placed]])

    def meet(self, fates: Fates) -> None:
        """Count these messages among those that the readers may have got."""
        message = np.full(len(fates.ops.seq), -1)
        message[fates.rows] = fates.codes
        message = message[self._rows]
        got = fates.ops.is_delivery[self._rows] & (message >= 0)
        np.maximum.at(self.newest_sent, self._codes[got], np.maximum(fates.sent_seq[message[got]], 0))


def judge(files: FileSet, findings: Findings) -> None:
    """All checks of messages, and the latencies that the client saw."""
    with files.column_by_column("ops", *COLUMNS) as column:
        ops = OpColumns(column, files.part)
    fates = Fates(ops)
    runs, run = ops.run.names.to_pylist(), ops.run.codes[fates.where]
    findings.time("publish-confirm", runs, run, fates.sent_ns, fates.acked_ns)
    findings.time("publish-deliver", runs, run, fates.sent_ns, fates.delivered_ns)
    _duplicates(fates, findings)
    failed = (fates.delivered > 0) & (fates.failed > 0) & (fates.acked == 0) & (fates.failed >= fates.sent)
    for i in np.flatnonzero(failed).tolist():
        seqs = fates.failed_seq[i], fates.delivered_seq[i]
        fates.add(findings, "G1a", i, seqs, "failed, yet delivered")
    _missing(files, fates, findings)


def _duplicates(fates: Fates, findings: Findings) -> None:
    twice = fates.placed & (fates.lowest < fates.highest)
    often = ~fates.placed & (fates.sent > 0) & (fates.sent < fates.delivered)
    for i in np.flatnonzero(twice | often).tolist():
        detail = (
            f"offsets {fates.lowest[i]} and {fates.highest[i]}"
            if twice[i]
            else f"sent {fates.sent[i]}, delivered {fates.delivered[i]}"
        )
        fates.add(findings, "duplicate", i, (fates.delivered_seq[i], fates.last_delivered_seq[i]), detail)


def _missing(files: FileSet, fates: Fates, findings: Findings) -> None:
    """Those that were acknowledged and never delivered: lost, or not seen when the log was drained."""
    ops = fates.ops
    missing = np.flatnonzero((fates.acked > 0) & (fates.delivered == 0))
    if not len(missing):
        return
    logs = ops.log[fates.where[missing]]
    drains = np.flatnonzero(ops.ok & ops.f.are("drain"))
    drained = dict(zip(ops.log[drains].tolist(), ops.seq[drains].tolist(), strict=True))
    ordered = files.by_run(ops.run, lambda run: "ordered" in run["contract"].split(), default=False)
    readers = _Readers(fates, np.unique(logs))
    begin, end = np.searchsorted(readers.log, logs), np.searchsorted(readers.log, logs, "right")
    if files.part != WHOLE:
        _complete(fates, readers, missing[ordered[ops.run.codes[fates.where[missing]]]])
    for i, log, b, e in zip(missing.tolist(), logs.tolist(), begin, end, strict=True):
        in_order = bool(ordered[ops.run.codes[fates.where[i]]])
        witnesses = _witnesses(fates, readers, i, slice(b, e), in_order)
        seqs = fates.sent_seq[i], fates.acked_seq[i]
        late = drained.get(log, 0) > fates.acked_seq[i]
        if len(witnesses) or (late and not in_order):
            who = min((ops.process[code] for code in witnesses), default="")
            fates.add(findings, "lost-write", i, seqs, "read past" if len(witnesses) else "drained", who)
        if late:
            fates.add(findings, "unseen", i, seqs, "drained")


def _complete(fates: Fates, readers: _Readers, missing: Ints) -> None:
    """Let the readers know of the messages of other parts that could prove one of the missing ones lost.

    That takes a message which was sent after a missing one was acknowledged. Of most readers the newest of
    this part shows as much, so that what is left to look at is the end of the log.
    """
    ops = fates.ops
    if not len(missing) or not len(readers.log):
        return
    latest = np.zeros(int(ops.log.max()) + 1, np.int64)  # when the last of the missing was acknowledged
    np.maximum.at(latest, ops.log[fates.where[missing]], fates.acked_seq[missing])
    open_ones = readers.newest_sent <= latest[readers.log]
    if not open_ones.any():
        return
    since = np.full(len(latest), np.iinfo(np.int64).max)
    np.minimum.at(since, readers.log[open_ones], readers.newest_sent[open_ones])
    late = ops.is_publish & ops.outcome.are("invoke") & (ops.seq > since[ops.log])
    readers.meet(Fates(ops.with_the_values_of(late)))


def _witnesses(fates: Fates, readers: _Readers, i: int, among: slice, ordered: bool) -> Ints:
    """The processes of readers that prove that a message is gone: they read around it, or past it."""
    hit = np.zeros(among.stop - among.start, bool)
    if ordered:
        hit |= (readers.newest_sent[among] > fates.acked_seq[i]) & (
            readers.first_seq[among] < max(fates.sent_seq[i], 0)
        )
    if fates.has_acked_offset[i]:
        offset = fates.acked_offset[i]
        hit |= readers.placed[among] & (readers.lowest[among] < offset) & (offset < readers.highest[among])
    return readers.process[among][hit]
