"""Operations that never ended: `stuck-request`. Twin of `conformance.rules.anomalies.wire.stuck_request`."""

from __future__ import annotations

import numpy as np

from conformance.pipeline.columns.arrays import NONE, Codes, dense, first, group, numbers
from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Findings


def judge(files: FileSet, findings: Findings) -> None:
    """Those of runs that were closed."""
    ops = files.read("ops", "run", "process", "op_id", "outcome", "error")
    run, process = Codes(ops["run"]), Codes(ops["process"], empty=True)
    begun, hangs = Codes(ops["outcome"]).are("invoke"), Codes(ops["error"]).are("hang")
    op_id = numbers(ops["op_id"])
    ended = files.by_run(run, lambda row: bool(row["ended"]), default=False)
    rows = np.flatnonzero((op_id != NONE) & ended[run.codes])
    codes, many = group(run.codes[rows], process.codes[rows], dense(op_id[rows])[0])
    over = np.zeros(many, bool)
    over[codes[~begun[rows] & ~hangs[rows]]] = True
    opened = begun[rows]
    where = first(many, codes[opened], rows[opened])
    where = np.sort(where[(where != NONE) & ~over])
    if not len(where):
        return
    for row in files.rows("ops", where, "run", "seq", "process", "f", "key", "value"):
        findings.add(
            "stuck-request",
            row["run"],
            key=row["key"] or "",
            value=row["value"] or "",
            process=row["process"],
            seqs=(row["seq"],),
            detail=row["f"],
        )
