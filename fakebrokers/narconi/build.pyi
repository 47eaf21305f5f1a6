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

def break_backend(
    down_s: float = 0.0,
    pass_frame: bool = True,
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
    """RabbitMQ goes away: WebSocket connections end with an error.

    Attributes:
        down_s: Seconds in which requests and upgrades get 500; 0 for none.
        pass_frame: Whether the frame that matched still goes on.
    """

def corrupt_content(
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
    """One byte, drawn from the seed, is another one; all lengths and the heads of frames stay right.

    Attributes:
        xor: Mask for the byte.
    """

def cut_body(
    keep: int = 0,
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
    """The answer's head, and only the front of its body; usually an end of the connection follows.

    Chunked answers send the front as a whole chunk, without the last one; others promise all of it.

    Attributes:
        keep: Bytes of the body that leave.
    """

def fail_instead(
    error: str = "AMQP channel was closed.",
    code: int = 500,
    close: bool = True,
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
    """The server's error object in place of a confirm or a delivery.

    Attributes:
        error: Its text; "" for none.
        code: Its number.
        close: Whether close frame 1000 and the end of TCP follow, as from the real server.
    """

def http_answer(
    status: int,
    body: str = "",
    content_type: str = "text/html",
    headers: Mapping[str, str] = ...,
    close: bool = False,
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
    """Another answer than the server's, as a gateway might give it.

    For a request, the server never sees it; for an answer, it takes the answer's place.

    Attributes:
        status: Its number.
        body: Its text.
        content_type: Of the text; "" for no such header.
        headers: Further ones, such as ``Location``.
        close: Whether the connection ends behind it.
    """

def slow_body(
    bytes_per_s: float = 1.0,
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
    """The answer's head at once, its body byte by byte.

    Attributes:
        bytes_per_s: How fast.
    """

def split_delivery(
    gap_s: float | None = None,
    pings: int = 0,
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
    """A delivery's metadata now, its payload message later or never.

    Attributes:
        gap_s: Seconds between them; None for no payload (an end of the connection may follow).
        pings: Pings in the gap, evenly.
    """

def with_headers(
    headers: Mapping[str, str],
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
    """The answer has more headers.

    Attributes:
        headers: Their names and values.
    """

def with_length(
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
    """The answer has a ``Content-Length`` instead of chunks (as from a gateway, or from node 20)."""

def without_header(
    header: str,
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
    """A header of the answer is missing.

    Attributes:
        header: Its name.
    """
