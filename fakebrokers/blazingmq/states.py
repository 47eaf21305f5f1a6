"""The states of a connection: what is read in each, which frame is due, and where it leads.

Rules: docs/protocols/blazingmq.md, 7. What the table cannot say:

* **Before the client has said who it is**, any other frame ends the connection; an authenticationRequest is
  answered and changes nothing. A client that is refused gets its brokerResponse, and the end after it.
* **Requests without a number**, answers, and control messages that cannot be read are ignored, and so are
  events of types that clients do not send: the connection stays.
* **Bytes that cannot be an event header** end the connection in every state.
* **From every state** the client, an operator, a fault or missed heartbeats can lead to `ENDED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import NamedTuple

from fakebrokers.blazingmq.frames import ClientIdentity, Disconnect
from fakebrokers.core.frames import Frame


class State(StrEnum):
    """Where a connection is in its life."""

    CONNECTED = "connected"  #: TCP only
    RUNNING = "running"  #: negotiated
    ADMIN = "admin"  #: negotiated, as an operator's tool
    STOPPING = "stopping"  #: the broker goes down, and waits for what is unconfirmed
    DISCONNECTED = "disconnected"  #: the client has said that it goes; it closes the connection
    ENDED = "ended"


class Reads(Enum):
    """What the broker does with frames in a state."""

    NEGOTIATION = "the frame that is due; any other ends the connection"
    EVENTS = "every request and event"
    COMMANDS = "admin commands; anything else is ignored, a disconnect, too"
    CONFIRMS = "messages, confirms, configurations and the disconnect; queues are neither opened nor closed"
    HEARTBEATS = "heartbeats"
    NOTHING = "nothing"


class Row(NamedTuple):
    """One state of the table.

    Attributes:
        reads: What happens to frames.
        due: The frame that leads on.
        next: The state after it.
        delivers: Whether messages are pushed.
    """

    reads: Reads
    due: type[Frame] | None
    next: State
    delivers: bool = False


STATES: Mapping[State, Row] = {
    State.CONNECTED: Row(Reads.NEGOTIATION, ClientIdentity, State.RUNNING),
    State.RUNNING: Row(Reads.EVENTS, Disconnect, State.DISCONNECTED, delivers=True),
    State.ADMIN: Row(Reads.COMMANDS, None, State.ENDED),
    State.STOPPING: Row(Reads.CONFIRMS, Disconnect, State.DISCONNECTED),
    State.DISCONNECTED: Row(Reads.HEARTBEATS, None, State.ENDED),
    State.ENDED: Row(Reads.NOTHING, None, State.ENDED),
}
