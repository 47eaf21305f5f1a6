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
#: nothing at all was promised away. `false-answers`: faults confirmed or rejected what the fake did not;
#: `by-hand`: a script has sent what may be a confirm, or no frame is one; whether it is cannot be known.
ALLOWED_BY = {
    "at-most-once": frozenset({"lost-write", "unseen"}),
    "at-least-once": frozenset({"duplicate"}),
    "false-answers": frozenset({"lost-write", "unseen", "G1a"}),
    "by-hand": frozenset({"phantom-confirm"}),
}
#: All words that a contract may have; of any other nobody knows what it allows.
CONTRACT_WORDS = ("exactly-once", *ALLOWED_BY, "ordered")
_ORDER = frozenset({"nonmonotonic-poll", "poll-skip"})

#: A client has this much of an agreed limit, plus a second, to notice silence (scenario NET-1.07).
TOLERANCE = 1.2
GRACE_MS = 1000
#: The metric of how long the harness stood still, in milliseconds.
LAG = "loop_lag_ms"
#: The metric of the share of CPU time that a hypervisor took away, 0 to 1.
STEAL = "cpu_steal"

#: Events of a client that report that it noticed the end of a connection.
NOTICED = ("connection_lost", "reconnecting", "disconnected")
#: Taps that report that a frame came from the client, and that one left for it.
ARRIVED = ("in", "received")
LEFT = ("out", "sent")
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


def unknown_in(contract: str) -> str:
    """What of a contract means nothing here, as a sentence; empty if all is known."""
    unknown = next((word for word in contract.split() if word not in CONTRACT_WORDS), None)
    if unknown is None:
        return ""
    return f"expected a contract of the words {', '.join(CONTRACT_WORDS)}, got {unknown!r}"


def allowed_names(contract: str) -> frozenset[str]:
    """The anomalies that a contract allows; none for an empty one. See `unknown_in` before."""
    words = contract.split()
    allowed = frozenset[str]().union(*(ALLOWED_BY.get(word, frozenset()) for word in words))
    return allowed | _ORDER if words and "ordered" not in words else allowed
