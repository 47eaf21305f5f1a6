"""Types of the functions in build.py; ``python -m fakebrokers.faults.stubs`` writes them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from fakebrokers.core.frames import Role
from fakebrokers.faults.effect import Realism
from fakebrokers.faults.match import Moment
from fakebrokers.faults.plan import Fault

_Moment: TypeAlias = Literal[
    "accept",
    "ready",
    "partial",
    "idle",
]
_Realism: TypeAlias = Literal[
    "legal",
    "environment",
    "illegal",
]
_Role: TypeAlias = Literal[
    "handshake",
    "open",
    "shut",
    "publish",
    "confirm",
    "reject",
    "deliver",
    "ack",
    "flow",
    "heartbeat",
    "close",
    "request",
    "response",
    "event",
    "data",
    "malformed",
]

def change_identity(
    identity: str,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """The send socket comes back with another routing id; its connections end.

    Attributes:
        identity: The new one; "" for none.
    """

def corrupt_part(
    xor: int = 255,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """One byte of one part, both drawn from the seed, is another one; the parts stay as long as they are.

    Attributes:
        xor: Mask for the byte.
    """

def expire_now(
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """All deliveries expire at this moment, however young: the messages come again."""

def extra_headers(
    headers: Sequence[str],
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """Protocol parts that clients have to ignore stand before the delimiter, as the document announces.

    Attributes:
        headers: Their texts; none of them empty.
    """

def store_failure(
    reason: str,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """The message is not stored; the producer is told why.

    Attributes:
        reason: The text behind the delimiter.
    """

def without_delimiter(
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] = ...,
    on: Moment | _Moment | None = None,
    connection: str | None = None,
    peer: str | None = None,
    nth: int | None = None,
    first: int | None = None,
    every: int | None = None,
    after_s: float | None = None,
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """The message ends where the empty part would be: no texts, no body."""
