"""The states of a connection: which frame is due in each, where it leads, and what any other frame does.

Rules: docs/protocols/rabbitmq-stream.md, 5. A connection begins in `CONNECTED` and goes one way through
`STATES`, row by row, to `OPEN`. What the table cannot say:

* **A frame that is due may be refused** (wrong password, no such virtual host): the connection goes to
  `REFUSING` instead of the row's next state, or straight to `ENDED` if the refusal is not held back.
* **The server looks at its state after each segment, not after each frame.** It answers whatever handshake
  frames a segment holds; then the last of them has to be one that leads on from the state in front of the
  segment (`Row.due`, `Row.skips`), or back to it (`Row.repeats`, from 4.3 on). If it is not, the connection
  ends without a Close frame. So one at the wrong time, or two requests in one segment, are answered first.
* **Any other frame before `OPEN`** ends the connection at once, without a Close frame. A Heartbeat does
  nothing in 4.3 and ends the connection in older versions.
* **Once open, what the server cannot read is answered with Close** (13 unknown frame, 14 too large), which
  leads to `CLOSING`; where the real server's process would crash, there is no frame, just the end.
* **Time**: every state before `OPEN` has `step_timeout_s`, `CLOSING` has `close_timeout_s`, both without a
  frame at the end; `REFUSING` lasts `failure_delay_s`, and the refusal is said at its end.
* **From every state** the client, an operator, a fault or a missed heartbeat can lead to `ENDED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import NamedTuple

from fakebrokers.core.frames import Frame
from fakebrokers.rabbitmq_stream.frames import (
    CloseResponse,
    Open,
    PeerProperties,
    SaslAuthenticate,
    SaslHandshake,
    Tune,
)


class State(StrEnum):
    """Where a connection is in its life."""

    CONNECTED = "connected"  #: TCP only
    INTRODUCED = "introduced"  #: peer properties exchanged
    AUTHENTICATING = "authenticating"  #: mechanisms told
    TUNING = "tuning"  #: authenticated; the server has sent its Tune
    TUNED = "tuned"  #: the client has sent its Tune
    OPEN = "open"  #: in a virtual host
    REFUSING = "refusing"  #: a refusal is held back
    CLOSING = "closing"  #: the server has sent Close and waits for the answer
    ENDED = "ended"  #: the server has hung up


OPEN = State.OPEN  # asked for with each frame: on Python 3.11 reading it from the class is slow


class Reads(Enum):
    """What the server does with frames in a state."""

    HANDSHAKE = "handshake frames; any other ends the connection"
    COMMANDS = "every command; a frame that it does not know is answered with Close 13"
    CLOSE_RESPONSE = "the answer to its Close; anything else is ignored"
    NOTHING = "nothing: whatever comes is ignored"


class Row(NamedTuple):
    """One state of the table.

    Attributes:
        reads: What happens to frames.
        due: The frame that leads on; None: no single one does.
        next: The state after it.
        repeats: The frame that led here and may come again.
        skips: The frame that leads to `OPEN` from here, though it is not due.
        says: Whether the server still sends frames.
    """

    reads: Reads
    due: type[Frame] | None
    next: State
    says: bool
    repeats: type[Frame] | None = None
    skips: type[Frame] | None = None


STATES: Mapping[State, Row] = {
    State.CONNECTED: Row(Reads.HANDSHAKE, PeerProperties, State.INTRODUCED, says=True),
    State.INTRODUCED: Row(Reads.HANDSHAKE, SaslHandshake, State.AUTHENTICATING, True, PeerProperties),
    State.AUTHENTICATING: Row(Reads.HANDSHAKE, SaslAuthenticate, State.TUNING, True, SaslHandshake),
    State.TUNING: Row(Reads.HANDSHAKE, Tune, State.TUNED, True, skips=Open),
    State.TUNED: Row(Reads.HANDSHAKE, Open, State.OPEN, True, Tune),
    State.OPEN: Row(Reads.COMMANDS, None, State.ENDED, says=True),
    State.REFUSING: Row(Reads.NOTHING, None, State.ENDED, says=False),
    State.CLOSING: Row(Reads.CLOSE_RESPONSE, CloseResponse, State.ENDED, says=False),
    State.ENDED: Row(Reads.NOTHING, None, State.ENDED, says=False),
}
