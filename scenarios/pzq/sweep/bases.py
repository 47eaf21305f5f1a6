"""The base scripts of PZQ; see `conformance.run.bases`."""

from scenarios.pzq.sweep.consuming import (
    by_hand,
    consume,
    expiring,
    failing,
    filtered,
    flood,
    given_back,
    in_time,
    several,
    slow,
    unsubscribed,
)
from scenarios.pzq.sweep.lives import (
    ask,
    both,
    closing,
    odd_counters,
    outage,
    rounds,
    stood_still,
    turned_away,
    two_sessions,
)
from scenarios.pzq.sweep.producing import bodies, bulk, cancelled, ids, refused, unwaited, waited
from scenarios.pzq.sweep.walking import WALKS

__all__ = [
    "WALKS",
    "ask",
    "bodies",
    "both",
    "bulk",
    "by_hand",
    "cancelled",
    "closing",
    "consume",
    "expiring",
    "failing",
    "filtered",
    "flood",
    "given_back",
    "ids",
    "in_time",
    "odd_counters",
    "outage",
    "refused",
    "rounds",
    "several",
    "slow",
    "stood_still",
    "turned_away",
    "two_sessions",
    "unsubscribed",
    "unwaited",
    "waited",
]
