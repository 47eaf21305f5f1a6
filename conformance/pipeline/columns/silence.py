"""Silence that the client did not mind: `missed-heartbeat-ignored`.

Twin of `conformance.rules.anomalies.wire.missed_heartbeat_ignored`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from conformance.pipeline.columns.arrays import NONE, Codes, group, most, names_of, numbers
from conformance.pipeline.columns.fileset import FileSet
from conformance.pipeline.columns.findings import Findings
from conformance.rules.anomalies.anomaly import GRACE_MS, LAG, LEFT, NOTICED, TOLERANCE
from fakebrokers.core.frames import Role
from fakebrokers.journal.record import Meaning, states_that

if TYPE_CHECKING:
    from conformance.pipeline.columns.arrays import Ints, Mask


class _Times:
    """The frames, and when each run had which events; runs are numbered alike in all tables."""

    def __init__(self, files: FileSet) -> None:
        frames = files.read("frames", "run", "seq", "t_ns", "connection", "tap", "direction", "kind", "role")
        ops = files.read("ops", "run", "t_ns", "f", "outcome")
        metrics = files.read("metrics", "run", "t_ns", "name", "value")
        parts = [Codes(table["run"]) for table in (frames, ops, metrics)]
        self.runs, (self.run, op_run, metric_run) = names_of(parts)
        self.connection, self.t_ns = Codes(frames["connection"]), numbers(frames["t_ns"])
        self.seq = numbers(frames["seq"])
        tap, role = Codes(frames["tap"]), Codes(frames["role"])
        self.is_said = tap.are(*LEFT)
        self.is_handshake = role.are(Role.HANDSHAKE)
        closes = Codes(frames["direction"]).are("in") & role.are(Role.CLOSE)
        ends = tap.are("state") & Codes(frames["kind"]).are(*states_that(Meaning.END))
        self.is_end = ~self.is_said & (ends | closes)
        op_ns, metric_ns = numbers(ops["t_ns"]), numbers(metrics["t_ns"])
        reported = np.flatnonzero(Codes(ops["outcome"]).are("event") & Codes(ops["f"]).are(*NOTICED))
        self.reported_run, self.reported_ns = op_run[reported], op_ns[reported]
        many = len(self.runs)
        all_runs = np.concatenate([self.run, op_run, metric_run])
        self.end_ns = np.maximum(most(many, all_runs, np.concatenate([self.t_ns, op_ns, metric_ns])), 0)
        self.lag_ms = np.full(many, -np.inf)
        lags = np.flatnonzero(Codes(metrics["name"]).are(LAG))
        np.maximum.at(self.lag_ms, metric_run[lags], np.asarray(metrics["value"])[lags])
        self.lag_ms[np.isinf(self.lag_ms)] = 0.0


def judge(files: FileSet, findings: Findings) -> None:
    """Of the runs with a limit."""
    limits = {
        row["run"]: row["heartbeat_limit_ms"] for row in files.runs if row["heartbeat_limit_ms"] is not None
    }
    if not limits:
        return
    times = _Times(files)
    budget = np.array(
        [
            round((limits[name] * TOLERANCE + GRACE_MS + lag) * 1e6) if name in limits else NONE
            for name, lag in zip(times.runs, times.lag_ms, strict=True)
        ],
        np.int64,
    )
    rows, over = _silences(times, budget)
    deadline = times.t_ns[rows] + budget[times.run[rows]]
    late = np.flatnonzero((over > deadline) & ~times.is_handshake[rows])
    noticed = _any_between(
        times.reported_run, times.reported_ns, times.run[rows[late]], times.t_ns[rows[late]], deadline[late]
    )
    ended = _ended(times, rows[late], deadline[late])
    for i in late[~(noticed | ended)]:
        row = rows[i]
        findings.add(
            "missed-heartbeat-ignored",
            times.runs[times.run[row]],
            key=times.connection.text(row) or "",
            seqs=(times.seq[row],),
            detail=f"silent for {(over[i] - times.t_ns[row]) // 1_000_000} ms",
        )


def _silences(times: _Times, budget: Ints) -> tuple[Ints, Ints]:
    """Frames of the fake in runs with a limit, and when the next one of the connection came (or the end)."""
    rows = np.flatnonzero(times.is_said & (budget[times.run] != NONE))
    place, _ = group(times.run[rows], times.connection.codes[rows])
    order = np.argsort(place, kind="stable")
    rows, place = rows[order], place[order]
    over = times.end_ns[times.run[rows]]
    followed = np.flatnonzero(place[1:] == place[:-1])
    over[followed] = times.t_ns[rows[followed + 1]]
    return rows, over


def _ended(times: _Times, rows: Ints, deadline: Ints) -> Mask:
    """For each of these frames, whether its connection ended in time."""
    ends = np.flatnonzero(times.is_end)
    both = np.concatenate([ends, rows])
    place, _ = group(times.run[both], times.connection.codes[both])
    mine = place[len(ends) :]
    return _any_between(place[: len(ends)], times.t_ns[ends], mine, times.t_ns[rows], deadline)


def _any_between(places: Ints, at: Ints, place: Ints, begin: Ints, end: Ints) -> Mask:
    """For each question, whether something happened at its place from `begin` to `end`."""
    if not len(at) or not len(place):
        return np.zeros(len(place), bool)
    clock = np.unique(at)
    order = np.lexsort((at, places))
    happened = places[order] * (len(clock) + 1) + np.searchsorted(clock, at[order])
    low = np.searchsorted(happened, place * (len(clock) + 1) + np.searchsorted(clock, begin))
    high = np.searchsorted(happened, place * (len(clock) + 1) + np.searchsorted(clock, end, "right"))
    return high > low
