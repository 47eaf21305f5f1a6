"""Exact quantiles of latencies that were seen anywhere: sorted values with their counts, merged at will."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from conformance.pipeline.columns.arrays import Ints


class Histogram:
    """Whole microseconds in ascending order, and how often each was seen."""

    def __init__(self, us: Ints, counts: Ints) -> None:
        self.us = us
        self.counts = counts

    @property
    def total(self) -> int:
        """How many were seen."""
        return int(self.counts.sum())

    def quantiles_ms(self, shares: Sequence[float]) -> list[float]:
        """For each share the latency in milliseconds that so large a part of them did not exceed.

        Between two neighbours it is interpolated, as Spark's and DuckDB's exact percentiles are.
        """
        upto = np.cumsum(self.counts)
        place = np.array(shares) * (upto[-1] - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, upto[-1] - 1)
        below = self.us[np.searchsorted(upto, low, "right")].astype(float)
        above = self.us[np.searchsorted(upto, high, "right")].astype(float)
        return [float(ms) for ms in np.round(below + (above - below) * (place - low), 6) / 1000]


def merged(parts: Sequence[Histogram]) -> Histogram:
    """All of them in one."""
    if len(parts) == 1:
        return parts[0]
    us = np.concatenate([part.us for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(us, kind="stable")
    us, counts = us[order], counts[order]
    new = np.flatnonzero(np.r_[True, us[1:] != us[:-1]])
    return Histogram(us[new], np.add.reduceat(counts, new))
