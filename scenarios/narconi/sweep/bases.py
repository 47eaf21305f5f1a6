"""The base scripts of Narconi; see `conformance.sweep.bases`."""

from scenarios.narconi.sweep.asking import ask, cancelled, crowd
from scenarios.narconi.sweep.consuming import at_once, consume, drained, drained_by_hand, encodings, settle
from scenarios.narconi.sweep.lives import RAISING, both, closing, in_the_turn, outage, rounds, two_sessions
from scenarios.narconi.sweep.publishing import alone, publish, refused, sizes, unwaited
from scenarios.narconi.sweep.troubles import (
    complained,
    for_once,
    kept_alive,
    left_alone,
    mixed_words,
    no_pongs,
    stale,
    unanswered,
    wrong_clock,
)
from scenarios.narconi.sweep.varied import KINDS, SERVERS, flood, many_messages, messages, names, posts

__all__ = [
    "KINDS",
    "RAISING",
    "SERVERS",
    "alone",
    "ask",
    "at_once",
    "both",
    "cancelled",
    "closing",
    "complained",
    "consume",
    "crowd",
    "drained",
    "drained_by_hand",
    "encodings",
    "flood",
    "for_once",
    "in_the_turn",
    "kept_alive",
    "left_alone",
    "many_messages",
    "messages",
    "mixed_words",
    "names",
    "no_pongs",
    "outage",
    "posts",
    "publish",
    "refused",
    "rounds",
    "settle",
    "sizes",
    "stale",
    "two_sessions",
    "unanswered",
    "unwaited",
    "wrong_clock",
]
