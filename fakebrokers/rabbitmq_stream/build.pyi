"""Types of the functions in build.py; ``python -m fakebrokers.faults.stubs`` writes them."""

from collections.abc import Mapping
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

def delete_stream(
    stream: str,
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
    """A stream of the virtual host "/" is deleted; whoever uses it gets a MetadataUpdate.

    Attributes:
        stream: Its name; nothing happens if there is none.
    """

def move_leader(
    stream: str,
    node: int | None = None,
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
    """Another node leads a stream of the virtual host "/"; whoever uses it gets a MetadataUpdate.

    Attributes:
        stream: Its name; nothing happens if there is none.
        node: The node's number, from 1; None: nobody leads.
    """
