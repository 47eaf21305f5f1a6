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

def break_packet(
    how: Literal["cut", "empty", "null", "number", "list", "garbage", "other"] = "cut",
    serializer: str = "MsgPack",
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
    """The message comes, but what is inside is no packet.

    Attributes:
        how: ``cut`` in half, ``empty``, ``null``, ``number``, ``list``, ``garbage``, or ``other``: written
            with another serializer.
        serializer: Which one that is.
    """

def duplicate_node(
    node: str = "",
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
    """Another instance with a node's id tells of itself. Real nodes of that id end their process.

    Attributes:
        node: Its id; "" for the node at the other end of the connection.
    """

def heal_bus(
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
    """All partitions of the bus end."""

def partition_bus(
    senders: Sequence[str] = ...,
    receivers: Sequence[str] = ...,
    one_way: bool = False,
    for_s: float | None = None,
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
    """From here on some nodes do not hear each other; the bus itself and all connections go on.

    Attributes:
        senders: Ids of nodes; none: all.
        receivers: Ids of nodes that do not hear them; none: all but `senders`.
        one_way: Whether the senders still hear the receivers.
        for_s: Seconds; None until `HealBus`, or ``heal()`` of the fake.
    """
