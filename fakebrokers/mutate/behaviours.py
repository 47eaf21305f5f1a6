"""Wrong behaviours of a broker, or of the line to it: the rules of the suite turned round, as faults.

Each takes place once in the life of a fake: at the first frame that can have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from fakebrokers.faults import (
    Fault,
    corrupt,
    crash,
    drop,
    duplicate,
    fault,
    fin,
    half_open,
    latency,
    reorder,
    rst,
    silent,
    truncate,
)
from fakebrokers.faults.match import Scope


class Behaviour(NamedTuple):
    """A wrong behaviour.

    Attributes:
        name: One or more words, joined by hyphens; the journal shows it as the name of the fault.
        about: What happens, in a sentence.
        fault: What does it.
        swaps: Whether it takes place only where two frames have changed places.
    """

    name: str
    about: str
    fault: Fault
    swaps: bool = False

    @property
    def least(self) -> int:
        """How many frames of a connection it needs."""
        return 2 if self.swaps else 1


class _Once(TypedDict):
    nth: int
    scope: Scope


class _Two(TypedDict):
    first: int
    scope: Scope


ONCE: _Once = {"nth": 1, "scope": "run"}
TWO: _Two = {"first": 2, "scope": "run"}
#: Longer than clients wait for a sign of life, at most.
LATE_S = 600.0

#: Of all protocols whose wire can have them.
GENERAL: Sequence[Behaviour] = (
    Behaviour("lost-confirm", "A message is stored, and its confirm is lost.", drop(role="confirm", **ONCE)),
    Behaviour("second-confirm", "A confirm comes twice.", duplicate(role="confirm", **ONCE)),
    Behaviour(
        "swapped-confirms",
        "Two confirms change places.",
        reorder(role="confirm", **TWO),
        swaps=True,
    ),
    Behaviour(
        "lost-publish",
        "A message never reaches the broker, which sends no answer.",
        drop(role="publish", **ONCE),
    ),
    Behaviour("lost-delivery", "A message is not delivered.", drop(role="deliver", **ONCE)),
    Behaviour("second-delivery", "A message is delivered twice.", duplicate(role="deliver", **ONCE)),
    Behaviour(
        "swapped-deliveries",
        "Two deliveries change places.",
        reorder(role="deliver", **TWO),
        swaps=True,
    ),
    Behaviour(
        "damaged-delivery",
        "The last byte of a delivery is another one; its size and checksum are right.",
        corrupt(at=-1, mend=True, role="deliver", **ONCE),
    ),
    Behaviour(
        "cut-delivery",
        "The connection is reset in the middle of a delivery.",
        fault(truncate(), rst(), role="deliver", **ONCE),
    ),
    Behaviour("lost-ack", "A consumer's ack never reaches the broker.", drop(role="ack", **ONCE)),
    Behaviour(
        "lost-answer",
        "A request is carried out, and its answer is lost.",
        drop(role="response", direction="out", **ONCE),
    ),
    Behaviour(
        "late-heartbeat",
        "A heartbeat, and all that the broker sends after it, is ten minutes late.",
        latency(LATE_S, role="heartbeat", direction="out", **ONCE),
    ),
    Behaviour(
        "silent-broker",
        "After the handshake the broker reads on and sends nothing.",
        silent(on="ready", **ONCE),
    ),
    Behaviour(
        "silence-after-publish",
        "After a message has come the broker reads on and sends nothing.",
        silent(role="publish", **ONCE),
    ),
    Behaviour(
        "turned-away",
        "A connection is reset as soon as it is there.",
        rst(on="accept", **ONCE),
    ),
    Behaviour(
        "reset-in-handshake",
        "A connection is reset in its handshake.",
        rst(role="handshake", direction="in", pass_frame=False, **ONCE),
    ),
    Behaviour(
        "reset-after-publish",
        "The connection is reset when a message has come, which the broker stores.",
        rst(role="publish", **ONCE),
    ),
    Behaviour(
        "end-after-confirm", "The connection ends in order after a confirm.", fin(role="confirm", **ONCE)
    ),
    Behaviour(
        "end-after-delivery",
        "The connection ends in order after a delivery.",
        fin(role="deliver", **ONCE),
    ),
    Behaviour(
        "vanished-host",
        "When a message has come nothing is read or written any more, and no FIN comes.",
        half_open(role="publish", **ONCE),
    ),
    Behaviour(
        "restart",
        "The broker crashes before it stores a message, and restarts at once.",
        crash(role="publish", **ONCE),
    ),
    Behaviour(
        "restart-without-data",
        "The broker crashes after a confirm, and restarts without anything that it had stored.",
        crash(keep_state=False, pass_frame=True, role="confirm", **ONCE),
    ),
)
