"""What the analysis of a part of the runs comes to; two parts make one, and its size does not grow with the
runs: cells (client, version, protocol, variant, scenario), histograms, counts, and the findings shown first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from conformance.pipeline.columns.histogram import Histogram, merged
from conformance.rules.anomalies.anomaly import NAMES

#: Findings of one name that the JSON carries; the Parquet has them all.
SHOWN = 200
CELL = ("client", "client_version", "protocol", "variant", "scenario")
#: Shares of the messages for which the latency is reported.
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)

Row = dict[str, Any]
Cell = tuple[str, ...]


class CellCounts(msgspec.Struct):
    """The runs of a cell.

    Attributes:
        broken_off: Runs that are not whole.
        anomalies: Findings that are not allowed.
        verdicts: How many runs ended how.
        affected: By the name of an anomaly, the runs with one that is not allowed.
    """

    runs: int = 0
    broken_off: int = 0
    anomalies: int = 0
    verdicts: dict[str, int] = msgspec.field(default_factory=dict)
    affected: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, other: CellCounts) -> None:
        """Count another part of the cell too."""
        self.runs += other.runs
        self.broken_off += other.broken_off
        self.anomalies += other.anomalies
        for mine, theirs in ((self.verdicts, other.verdicts), (self.affected, other.affected)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count


class Samples(msgspec.Struct):
    """The samples of one metric of the harness."""

    samples: int
    worst: float
    total: float

    def add(self, other: Samples) -> None:
        """Count another part of them too."""
        self.samples += other.samples
        self.worst = max(self.worst, other.worst)
        self.total += other.total


class Summary(msgspec.Struct):
    """Of one part, or of all.

    Attributes:
        counts, allowed: By the name of the anomaly.
        shown: The first `SHOWN` findings of each name, those not allowed first.
        matrix: By cell.
        faults: By cell and the name of a fault that touched a frame; "" for runs that none touched.
        harness: By cell and metric.
        latencies: By cell and measure; see `conformance.pipeline.columns.findings`.
        damaged: Of files that could not be judged, by the name of their `Source`, why.
        problems: Why a part could not be written.
        judged: How many traces the rules for all runs have judged.
        unread: The runs whose traces they could not judge, with the reason.
    """

    counts: dict[str, int] = msgspec.field(default_factory=dict)
    allowed: dict[str, int] = msgspec.field(default_factory=dict)
    shown: dict[str, list[Row]] = msgspec.field(default_factory=dict)
    matrix: dict[Cell, CellCounts] = msgspec.field(default_factory=dict)
    faults: dict[Cell, CellCounts] = msgspec.field(default_factory=dict)
    harness: dict[Cell, Samples] = msgspec.field(default_factory=dict)
    latencies: dict[Cell, Histogram] = msgspec.field(default_factory=dict)
    damaged: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[str] = msgspec.field(default_factory=list)
    judged: int = 0
    unread: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, other: Summary) -> Summary:
        """Take in another part; returns itself."""
        for mine, theirs in ((self.counts, other.counts), (self.allowed, other.allowed)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        for name, rows in other.shown.items():
            self.shown[name] = in_order([*self.shown.get(name, ()), *rows])[:SHOWN]
        for tallies, more in ((self.matrix, other.matrix), (self.faults, other.faults)):
            for cell, tally in more.items():
                tallies.setdefault(cell, CellCounts()).add(tally)
        for cell, samples in other.harness.items():
            if cell in self.harness:
                self.harness[cell].add(samples)
            else:
                self.harness[cell] = samples
        for cell, histogram in other.latencies.items():
            mine_too = self.latencies.get(cell)
            self.latencies[cell] = merged([mine_too, histogram]) if mine_too else histogram
        self.damaged |= other.damaged
        self.problems += other.problems
        self.judged += other.judged
        self.unread |= other.unread
        return self

    def rows_of_matrix(self) -> list[Row]:
        """One row per cell."""
        return [_row_of(CELL, cell, tally) for cell, tally in sorted(self.matrix.items())]

    def rows_of_faults(self) -> list[Row]:
        """One row per cell and fault."""
        return [_row_of((*CELL, "fault"), cell, tally) for cell, tally in sorted(self.faults.items())]

    def rows_of_harness(self) -> list[Row]:
        """One row per cell and metric."""
        return [
            {
                **dict(zip((*CELL, "name"), cell, strict=True)),
                "samples": found.samples,
                "worst": found.worst,
                "mean": found.total / found.samples,
            }
            for cell, found in sorted(self.harness.items())
        ]

    def rows_of_latencies(self) -> list[Row]:
        """One row per cell and measure, and one over all scenarios of a client (scenario "")."""
        parts: dict[Cell, list[Histogram]] = {}
        for cell, histogram in self.latencies.items():
            overall = (*cell[:4], "", cell[5])
            for each in dict.fromkeys((cell, overall)):
                parts.setdefault(each, []).append(histogram)
        rows = []
        for cell, histograms in sorted(parts.items()):
            whole = merged(histograms)
            rows.append(
                {
                    **dict(zip((*CELL, "measure"), cell, strict=True)),
                    "messages": whole.total,
                    "quantiles_ms": whole.quantiles_ms(QUANTILES),
                }
            )
        return rows

    def findings(self) -> list[Row]:
        """Those that are shown, name by name: anomalies, then rules."""
        rules = sorted(self.shown.keys() - set(NAMES))
        return [row for name in (*NAMES, *rules) for row in self.shown.get(name, ())]


def _row_of(names: Sequence[str], cell: Cell, tally: CellCounts) -> Row:
    return {
        **dict(zip(names, cell, strict=True)),
        "runs": tally.runs,
        "broken_off": tally.broken_off,
        "verdicts": dict(sorted(tally.verdicts.items())),
        "anomalies": tally.anomalies,
        # A run that is judged in parts may be counted by several of them.
        "affected": {name: min(count, tally.runs) for name, count in sorted(tally.affected.items())},
    }


def in_order(rows: Sequence[Row]) -> list[Row]:
    """As they are shown."""
    return sorted(rows, key=lambda row: (row["allowed"], row["run"], row["key"], row["value"], row["seqs"]))


def packed(summary: Summary) -> bytes:
    """As bytes; `unpacked` reads them, here and on other machines."""
    document = {
        "counts": summary.counts,
        "allowed": summary.allowed,
        "shown": summary.shown,
        "matrix": list(summary.matrix.items()),
        "faults": list(summary.faults.items()),
        "harness": list(summary.harness.items()),
        "latencies": [
            (cell, found.us.astype("<i8").tobytes(), found.counts.astype("<i8").tobytes())
            for cell, found in summary.latencies.items()
        ],
        "damaged": summary.damaged,
        "problems": summary.problems,
        "judged": summary.judged,
        "unread": summary.unread,
    }
    return msgspec.msgpack.encode(document)


class _Packed(msgspec.Struct):
    counts: dict[str, int]
    allowed: dict[str, int]
    shown: dict[str, list[Row]]
    matrix: list[tuple[Cell, CellCounts]]
    faults: list[tuple[Cell, CellCounts]]
    harness: list[tuple[Cell, Samples]]
    latencies: list[tuple[Cell, bytes, bytes]]
    damaged: dict[str, str]
    problems: list[str]
    judged: int = 0
    unread: dict[str, str] = {}


def unpacked(content: bytes) -> Summary:
    """What `packed` wrote.

    Raises:
        msgspec.MsgspecError: It did not.
    """
    found = msgspec.msgpack.decode(content, type=_Packed)
    return Summary(
        found.counts,
        found.allowed,
        found.shown,
        dict(found.matrix),
        dict(found.faults),
        dict(found.harness),
        {
            cell: Histogram(
                np.frombuffer(us, "<i8").astype(np.int64), np.frombuffer(n, "<i8").astype(np.int64)
            )
            for cell, us, n in found.latencies
        },
        found.damaged,
        found.problems,
        found.judged,
        found.unread,
    )
