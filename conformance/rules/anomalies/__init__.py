"""Checkers that judge one run row by row; `conformance.pipeline.columns` does so for millions of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from conformance.rules.anomalies.anomaly import NAMES, Anomaly, allowed_names
from conformance.rules.anomalies.data import duplicate, g1a, lost_write, nonmonotonic_poll, poll_skip, unseen
from conformance.rules.anomalies.wire import missed_heartbeat_ignored, phantom_confirm, stuck_request
from fakebrokers.journal.reader import RunLog

CHECKS: Mapping[str, Callable[[RunLog], Iterator[Anomaly]]] = {
    "lost-write": lost_write,
    "duplicate": duplicate,
    "unseen": unseen,
    "nonmonotonic-poll": nonmonotonic_poll,
    "poll-skip": poll_skip,
    "G1a": g1a,
    "phantom-confirm": phantom_confirm,
    "missed-heartbeat-ignored": missed_heartbeat_ignored,
    "stuck-request": stuck_request,
}


def check(log: RunLog) -> list[Anomaly]:
    """Everything that is wrong with a run; what its contract allows is marked so."""
    allowed = allowed_names(log.run.contract)
    return [
        msgspec.structs.replace(anomaly, allowed=name in allowed)
        for name, judge in CHECKS.items()
        for anomaly in judge(log)
    ]


__all__ = ["CHECKS", "NAMES", "Anomaly", "check"]
