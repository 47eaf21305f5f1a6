"""Rules that hold in every run, whatever faults there were. How to write one: `conformance.run`.

Each is a pure function over a `Case`: the trace, what its frames mean, ops, events. It speaks of roles and
facts, never of a protocol. What faults excuse is excused by what is in the trace.
"""

from conformance.rules import (
    callbacks,
    closing,
    connections,
    definite,
    deliveries,
    draining,
    giving_up,
    handshakes,
    heartbeats,
    life,
    outcomes,
    queues,
    recovery,
    requests,
    settling,
    streams,
    subscriptions,
    waiting,
    wire,
    written,
)
from conformance.rules.registry import (
    HARNESS,
    INVARIANTS,
    Finding,
    Invariant,
    May,
    findings,
    invariant,
    judge,
)

__all__ = [
    "HARNESS",
    "INVARIANTS",
    "Finding",
    "Invariant",
    "May",
    "callbacks",
    "closing",
    "connections",
    "definite",
    "deliveries",
    "draining",
    "findings",
    "giving_up",
    "handshakes",
    "heartbeats",
    "invariant",
    "judge",
    "life",
    "outcomes",
    "queues",
    "recovery",
    "requests",
    "settling",
    "streams",
    "subscriptions",
    "waiting",
    "wire",
    "written",
]
