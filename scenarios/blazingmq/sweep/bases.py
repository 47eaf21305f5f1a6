"""The base scripts of BlazingMQ; see `conformance.run.bases`."""

from scenarios.blazingmq.sweep.asking import cancelled, configured, odd, queues, refused_options
from scenarios.blazingmq.sweep.consuming import (
    consume,
    late_callback,
    older,
    read_first,
    refused_again,
    several,
)
from scenarios.blazingmq.sweep.lives import (
    BEATING,
    RAISING,
    closing,
    herd,
    in_the_turn,
    outage,
    plain,
    rounds,
    stopped,
    turned_away,
    two_sessions,
)
from scenarios.blazingmq.sweep.publishing import batched, bodies, both, crowd, full, publish, unwaited, wraps
from scenarios.blazingmq.sweep.walking import WALKS

__all__ = [
    "BEATING",
    "RAISING",
    "WALKS",
    "batched",
    "bodies",
    "both",
    "cancelled",
    "closing",
    "configured",
    "consume",
    "crowd",
    "full",
    "herd",
    "in_the_turn",
    "late_callback",
    "odd",
    "older",
    "outage",
    "plain",
    "publish",
    "queues",
    "read_first",
    "refused_again",
    "refused_options",
    "rounds",
    "several",
    "stopped",
    "turned_away",
    "two_sessions",
    "unwaited",
    "wraps",
]
