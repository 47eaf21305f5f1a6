"""Rules that hold in every run, whatever faults there were. See `conformance.sweep` for how to write one.

Each is a pure function over a `Case`: the tape, what its frames mean, ops, events. It speaks of roles and
facts, never of a protocol. What faults excuse is excused by what stands on the tape.
"""

from conformance.invariants import (
    closing,
    connections,
    definite,
    deliveries,
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
    waiting,
    wire,
)
from conformance.invariants.registry import (
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
    "closing",
    "connections",
    "definite",
    "deliveries",
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
    "waiting",
    "wire",
]
