"""What a checker finds, and what a scenario's contract allows."""

from __future__ import annotations

import msgspec

NAMES = (
    "lost-write",
    "duplicate",
    "unseen",
    "nonmonotonic-poll",
    "poll-skip",
    "G1a",
    "phantom-confirm",
    "missed-heartbeat-ignored",
    "stuck-request",
)

#: Words of a contract and what they allow. `ordered` is special: without it order is not judged, unless
#: nothing at all was promised away.
_ALLOWED_BY = {
    "at-most-once": frozenset({"lost-write", "unseen"}),
    "at-least-once": frozenset({"duplicate"}),
}
_ORDER = frozenset({"nonmonotonic-poll", "poll-skip"})

#: A client has this much of an agreed limit, plus a quarter of a second, to notice silence.
TOLERANCE = 1.2
GRACE_MS = 250

#: Events of a client that tell that it noticed the end of a connection.
NOTICED = ("connection_lost", "reconnecting", "disconnected")
#: States of a connection that end it.
ENDS = ("closed", "fin", "rst")
#: Ops that let a client read a log from another place on, and events that do so for all its logs.
REPOSITIONS = ("subscribe", "assign", "unsubscribe")
RECONNECTS = ("connected", "connection_lost", "reconnected")


class Anomaly(msgspec.Struct, frozen=True, kw_only=True):
    """One finding with its evidence.

    Attributes:
        name: One of `NAMES`.
        key: The log (stream, queue), or the connection; empty where neither is meant.
        value: Which message, or the key on the wire; empty where there is none.
        process: The client session that saw it, or did it.
        seqs: Records of the run that prove it.
        allowed: The scenario's contract allows it.
        detail: The rest, in a few words.
    """

    name: str
    run: str
    key: str = ""
    value: str = ""
    process: str = ""
    seqs: tuple[int, ...] = ()
    allowed: bool = False
    detail: str = ""


def allowed_names(contract: str) -> frozenset[str]:
    """The anomalies that a contract allows; none for an empty one."""
    words = contract.split()
    allowed = frozenset[str]().union(*(_ALLOWED_BY.get(word, frozenset()) for word in words))
    return allowed | _ORDER if words and "ordered" not in words else allowed
