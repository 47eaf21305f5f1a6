"""The base scripts of Moleculer; see `conformance.sweep.bases`."""

from scenarios.moleculer.sweep.answering import chunks, events, joining, namespaces, serve, uploads
from scenarios.moleculer.sweep.calling import (
    balanced,
    both,
    bulk,
    call,
    cancelled,
    in_the_turn,
    limits,
    odd_answers,
    peers,
    silence,
    streams,
    two_nodes,
)
from scenarios.moleculer.sweep.lives import again, closing, outage, rounds

__all__ = [
    "again",
    "balanced",
    "both",
    "bulk",
    "call",
    "cancelled",
    "chunks",
    "closing",
    "events",
    "in_the_turn",
    "joining",
    "limits",
    "namespaces",
    "odd_answers",
    "outage",
    "peers",
    "rounds",
    "serve",
    "silence",
    "streams",
    "two_nodes",
    "uploads",
]
