"""What adapters report unasked, by the name of the event; events with other names are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from conformance.clients.adapter.messages import Error, Message, Outcome
from conformance.clients.adapter.ops.define import Incoming
from conformance.clients.adapter.ops.values import Code, Key


class SessionEvent(Incoming, frozen=True):
    """Something happened to a session."""

    session: str
    what: Literal[
        "connected",
        "connection_lost",
        "reconnecting",
        "reconnected",
        "disconnected",
        "target_closed",
        "target_reopened",
        "flow_blocked",
        "flow_resumed",
    ]
    text: str | None = None
    targets: list[str] | None = None
    code: Code = None


class ErrorEvent(Incoming, frozen=True):
    """The library reported an error that belongs to no op."""

    error: Error
    where: Literal["read", "decode", "callback", "write", "other"]
    session: str | None = None
    sub: str | None = None


class OutcomeEvent(Incoming, frozen=True):
    """What became of a message that was only sent.

    Attributes:
        id: That of the request.
    """

    id: int | None
    outcome: Outcome
    key: Key = None
    code: Code = None


class DoneEvent(Incoming, frozen=True):
    """An op inside a callback has ended.

    Attributes:
        index: Its place in `do`.
    """

    sub: str
    ref: str
    index: int
    op: str
    ok: bool
    result: Any = None
    error: Error | None = None


class ReturnedEvent(Incoming, frozen=True):
    """The callback of a message has ended; reported where it sleeps or runs ops, else it ends with the
    message.

    Attributes:
        raised: It failed, as was ordered.
    """

    sub: str
    ref: str
    raised: bool = False


class LateEvent(Incoming, frozen=True):
    """An answer came after a time-out, if the library shows it."""

    id: int | None = None
    op: str | None = None
    text: str | None = None


class NoteEvent(Incoming, frozen=True):
    """What else is worth reporting."""

    text: str | None = None


EVENTS: Mapping[str, type] = {
    "message": Message,
    "session": SessionEvent,
    "error": ErrorEvent,
    "outcome": OutcomeEvent,
    "done": DoneEvent,
    "returned": ReturnedEvent,
    "late": LateEvent,
    "note": NoteEvent,
}
