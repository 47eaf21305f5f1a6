"""The base scripts of Narconi; see `conformance.sweep.bases`."""

from scenarios.narconi.sweep.asking import ask, cancelled, crowd
from scenarios.narconi.sweep.consuming import at_once, consume, drained, encodings, settle
from scenarios.narconi.sweep.lives import RAISING, both, closing, in_the_turn, outage, rounds, two_sessions
from scenarios.narconi.sweep.publishing import alone, publish, refused, sizes, unwaited

__all__ = [
    "RAISING",
    "alone",
    "ask",
    "at_once",
    "both",
    "cancelled",
    "closing",
    "consume",
    "crowd",
    "drained",
    "encodings",
    "in_the_turn",
    "outage",
    "publish",
    "refused",
    "rounds",
    "settle",
    "sizes",
    "two_sessions",
    "unwaited",
]
