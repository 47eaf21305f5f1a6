"""What the frames of all protocols have in common: a kind, a role, items and a correlation key.

Each protocol's own ``frames.py`` declares one `Frame` class per frame and ends in a table
``FRAMES: FrameTable`` from class to `FrameSpec`. Faults, journal and checkers read only that
table, so they serve every protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import msgspec


class Role(StrEnum):
    """What a frame is for, in words that hold across protocols.

    Beware: BlazingMQ's ACK is `CONFIRM` (broker to producer), its CONFIRM is `ACK`.
    """

    HANDSHAKE = "handshake"  #: connection set-up: negotiation, authentication, tuning
    OPEN = "open"  #: declares a publisher, queue, subscription
    SHUT = "shut"  #: the counterpart of open
    PUBLISH = "publish"  #: producer to broker
    CONFIRM = "confirm"  #: broker to producer: stored
    REJECT = "reject"  #: broker to producer: not stored
    DELIVER = "deliver"  #: broker to consumer
    ACK = "ack"  #: consumer to broker: processed (or not)
    FLOW = "flow"  #: credit, limits, pause and resume
    HEARTBEAT = "heartbeat"  #: sign of life
    CLOSE = "close"  #: orderly end of the connection, and its answer
    REQUEST = "request"  #: any other question of the client
    RESPONSE = "response"  #: the answer to a request
    EVENT = "event"  #: news that the broker sends unasked
    DATA = "data"  #: bytes of a stream whose frames nobody looks at
    MALFORMED = "malformed"  #: bytes that are no frame


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One delimited unit on the wire, as a value. Its kind is the name of its class."""


class Malformed(Frame, frozen=True, gc=False):
    """Bytes that are no frame.

    Attributes:
        data: The bytes, at most the first 256.
        problem: What was expected, what came, and where.
        code: What the session may want to know: ``unknown``, ``too-large``, ``garbage`` ...
    """

    data: bytes
    problem: str
    code: str = "unknown"


class Items(Protocol):
    """How to look into a frame that carries several messages (`unit = "item"`)."""

    def count(self, frame: Any) -> int:
        """How many items the frame carries."""

    def keys(self, frame: Any) -> Sequence[Any]:
        """The correlation key of each item, in order (publishing id, GUID ...)."""

    def select(self, frame: Any, indices: Sequence[int]) -> Any:
        """A copy of the frame with only these items, in this order."""


class FrameSpec(NamedTuple):
    """A row of a protocol's frame table.

    Attributes:
        role: See `Role`.
        key: Name of the field that ties a question to its answer, or a message to its confirm.
        items: For frames that are batches; None where a frame is one item.
        status: Name of the field that holds the wire's result code, if there is one.
        secret: Names of the fields that carry credentials; never written to a journal.
        bulk: Names of the fields that hold message bodies; left out of the journal when large.
        scope: Name of the field in whose scope the key counts (a publisher's id), if that is not the
            whole connection.
    """

    role: Role
    key: str | None = None
    items: Items | None = None
    status: str | None = None
    secret: tuple[str, ...] = ()
    bulk: tuple[str, ...] = ()
    scope: str | None = None


FrameTable = Mapping[type[Frame], FrameSpec]

#: What came may hold a credential as well as anything else.
MALFORMED_SPEC = FrameSpec(Role.MALFORMED, secret=("data",))


def kind_of(frame: Frame) -> str:
    """The protocol's own name of the frame, such as ``PublishConfirm``."""
    return type(frame).__name__
