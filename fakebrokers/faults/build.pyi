"""Types of the functions in build.py; ``python -m fakebrokers.faults.stubs`` writes them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from fakebrokers.core.frames import Role
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.making import sweep as sweep
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

def fault(
    *acts: Effect | Fault,
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
    """Several effects in one step: ``fault(truncate(), rst(), role="confirm", nth=2)``."""

def black_hole(
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
    """New connects hang: the accept queue is full. Those that stand go on.

    Attributes:
        for_s: For how many seconds; None until the fault is released.
    """

def coalesce(
    frames: int | None = None,
    within_s: float = 0.02,
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
    """This frame and the next ones leave in one write; an end of the connection comes behind them.

    Attributes:
        frames: How many together; None for all that come within `within_s`.
        within_s: What is there after `within_s` seconds leaves all the same.
    """

def corrupt(
    at: int | None = None,
    of: Literal["frame", "stream"] = "frame",
    xor: int = 255,
    length: int = 1,
    mend: bool = False,
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
    """Flips bits in the frame's bytes.

    Attributes:
        at: Offset in the frame, from 0 (its length prefix included); negative counts from the end;
            None draws one from the seed, behind the length prefix if the frame has one.
        of: Whether `at` counts in the frame, or in the connection's whole stream of this direction.
        xor: Mask for each byte.
        length: How many bytes in a row.
        mend: Make the frame's checksum right again, so that only the content is wrong.
    """

def crash(
    how: Literal["rst", "fin"] = "rst",
    restart_s: float | None = 0.0,
    keep_state: bool = True,
    pass_frame: bool = False,
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
    """The broker dies: all connections end, nothing listens.

    Attributes:
        how: What the clients see.
        restart_s: After how many seconds it comes back; None stays down.
        keep_state: Whether it comes back with what it had stored.
        pass_frame: Whether the frame that matched is still handled (or sent).
    """

def delay(
    seconds: float,
    jitter: float = 0.0,
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
    """The frame is late, the ones behind it pass.

    Attributes:
        seconds: By how much.
        jitter: Plus or minus up to `jitter` seconds, drawn from the seed.
    """

def drop(
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
    """The frame is lost; everything else goes on. TCP never does that: it stands for a broker's bug,
    or for a frame that was lost together with the node that meant to send it.
    """

def duplicate(
    times: int = 1,
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
    """The frame comes again, `times` times, right behind itself."""

def extend(
    hex: str,
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
    """More bytes at the end of the frame; its size field counts them.

    Attributes:
        hex: The bytes, in hexadecimal digits.
    """

def fin(
    pass_frame: bool = True,
    after_s: float = 0.0,
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
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """An orderly TCP end.

    Attributes:
        pass_frame: Whether the frame that matched still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

def half_open(
    pass_frame: bool = True,
    after_s: float = 0.0,
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
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """The broker's host vanishes: nothing is read or written any more, and no FIN comes.

    Attributes:
        pass_frame: Whether the frame that matched still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

def hold(
    behind: bool = False,
    spare: Sequence[Role | _Role] = ...,
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
    """The frame waits until `faults.release(name)`.

    Attributes:
        behind: Everything behind it waits too.
        spare: Roles that pass all the same, such as ``heartbeat`` (without `behind`).
        for_s: Or until `for_s` seconds have passed.
    """

def inject(
    kind: str = "",
    fields: Mapping[str, Any] = ...,
    hex: str = "",
    place: Literal["before", "after"] = "after",
    times: int = 1,
    *,
    name: str = "",
    realism: Realism | _Realism | None = None,
    direction: Literal["in", "out"] | None = None,
    role: Role | _Role | None = None,
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
    """Says a frame, or raw bytes, that the broker never meant to say.

    Attributes:
        kind: The protocol's name of the frame, with `fields`.
        fields: Its fields.
        hex: Or raw bytes instead, in hexadecimal digits.
        place: Before or behind the frame that matched.
        times: How often.
    """

def latency(
    seconds: float,
    jitter: float = 0.0,
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
    """The frame and everything behind it waits; order is kept.

    Attributes:
        seconds: By how much.
        jitter: Plus or minus up to `jitter` seconds, drawn from the seed.
    """

def refuse(
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
    """No listener: new connections are refused. Those that stand go on.

    Attributes:
        for_s: For how many seconds; None until the fault is released.
    """

def reorder(
    window: int = 2,
    order: Literal["reverse", "shuffle"] = "reverse",
    within_s: float = 0.5,
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
    """Collects `window` matching frames and lets them go in another order.

    Attributes:
        window: How many.
        order: ``reverse``, or ``shuffle`` by the seed.
        within_s: If they do not come in that time, those that are there go on as they came.
    """

def reply(
    code: int,
    fields: Mapping[str, Any] = ...,
    tail_hex: str = "",
    pass_request: bool = False,
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
    """The broker never sees the request; the client gets this error code for it.

    Attributes:
        code: The protocol's own code.
        fields: Further fields of the answer, such as a challenge.
        tail_hex: More bytes at the end of the answer, in hexadecimal digits; its size field counts them.
        pass_request: Let the broker see it all the same (its own answer is then a second one).
    """

def rewrite(
    fields: Mapping[str, Any],
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
    """Fields get other values.

    Attributes:
        fields: Name to new value; a dotted name looks inside (``chunk.crc``). ``{"add": n}`` as a
            value adds to what is there.
    """

def rst(
    pass_frame: bool = True,
    after_s: float = 0.0,
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
    byte: int | None = None,
    probability: float | None = None,
    per: Literal["frame", "connection"] = "frame",
    unit: Literal["frame", "item"] = "frame",
    scope: Literal["connection", "peer", "run"] | None = None,
) -> Fault:
    """A TCP reset.

    Attributes:
        pass_frame: Whether the frame that matched still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

def shift_clock(
    seconds: float,
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
    """The wall clock that the broker reports jumps.

    Attributes:
        seconds: By how much, forwards or (negative) backwards.
    """

def silent(
    spare: Sequence[Role | _Role] = ...,
    for_s: float | None = None,
    pass_frame: bool = False,
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
    """From here on the client hears nothing; what it sends is still read and acted upon.

    Attributes:
        spare: Roles that are still said, such as ``heartbeat``.
        for_s: For so long; None until the fault is released.
        pass_frame: Whether the frame that matched is the last one that leaves. A client's frame that
            matched is always heard.
    """

def slice_(
    size: int | None = None,
    at: int | None = None,
    of: Literal["frame", "stream"] = "frame",
    up_to: int | None = None,
    walk: bool = False,
    gap_s: float = 0.001,
    gap: Literal["fixed", "random"] = "fixed",
    gap_bytes: int | None = None,
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
    """The frame's bytes leave in several writes.

    Attributes:
        size: So many bytes in each write.
        at: Or cut once, at this offset (negative: from the end).
        of: Whether `at` counts in the frame, or in the connection's whole stream.
        up_to: Or in pieces of 1 to `up_to` bytes, drawn from the seed.
        walk: Or cut the first frame of a kind at byte 1, the second of that kind at byte 2 ...
        gap_s: Seconds between two writes.
        gap: Whether each gap is that long, or drawn from 0 to that.
        gap_bytes: Gaps only within the first `gap_bytes` bytes of the connection; None everywhere.
    """

def stall(
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
    """The broker stops reading from this client; it goes on writing.

    Attributes:
        for_s: For so long; None until the fault is released.
    """

def throttle(
    bytes_per_s: int,
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
    """So many bytes per second, this frame and everything behind it in line.

    Outwards the bytes leave in 20 writes per second. Inwards the broker hears a frame when its last byte
    would have come, and reads no further than a little ahead of that.

    Attributes:
        bytes_per_s: The bandwidth.
    """

def truncate(
    keep: int | None = None,
    of: Literal["frame", "stream"] = "frame",
    share: float = 0.5,
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
    """Only the first bytes of the frame leave. Usually an end of the connection comes behind it.

    Attributes:
        keep: The first `keep` bytes; negative leaves out that many at the end.
        of: Whether `keep` counts in the frame, or in the connection's whole stream of this direction.
        share: Or this share of the frame (0..1); at least one byte stays, and one is lost.
    """
