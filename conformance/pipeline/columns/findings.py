"""What the checks over columns found: anomalies, and how often which latency was seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from conformance.pipeline.columns.arrays import NONE, group
from conformance.pipeline.columns.histogram import Histogram

if TYPE_CHECKING:
    from conformance.pipeline.columns.arrays import Ints

#: Name, run, key, value, process, seqs, detail: the columns of `conformance.rules.anomalies.anomaly.Anomaly`.
Found = tuple[str, str, str, str, str, list[int], str]


class Findings:
    """All findings of one file set.

    Attributes:
        latencies: A histogram by measure and run.
        judged: How many traces the rules have judged.
        unread: The runs whose traces they could not judge, with the reason.
    """

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.judged = 0
        self.unread: dict[str, str] = {}
        self.latencies: dict[tuple[str, str], Histogram] = {}

    def add(
        self,
        name: str,
        run: str,
        *,
        key: str = "",
        value: str = "",
        process: str = "",
        seqs: Iterable[int] = (),
        detail: str = "",
    ) -> None:
        """An anomaly; of `seqs`, those that are there."""
        evidence = [int(seq) for seq in seqs if seq != NONE]
        self.found.append((name, run, key, value, process, evidence, detail))

    def time(self, measure: str, names: Sequence[str], runs: Ints, begin: Ints, end: Ints) -> None:
        """Latencies: for each message the code of its run, and nanoseconds, `NONE` where there are none."""
        there = (begin != NONE) & (end != NONE)
        spans, runs = end[there] - begin[there], runs[there]
        runs, spans = runs[spans >= 0], spans[spans >= 0]
        us = (spans + 500) // 1000  # whole microseconds: few different values
        codes, many = group(runs, us)
        counts = np.bincount(codes, minlength=many)
        where = np.empty(many, np.int64)
        where[codes] = np.arange(len(codes))
        order = np.lexsort((us[where], runs[where]))
        run, value, count = runs[where][order], us[where][order], counts[order]
        at = np.searchsorted(run, np.arange(len(names) + 1))
        for code, name in enumerate(names):
            part = slice(at[code], at[code + 1])
            if part.stop > part.start:
                self.latencies[measure, name] = Histogram(value[part], count[part])
