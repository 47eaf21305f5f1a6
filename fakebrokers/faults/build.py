"""Faults in one line of Python: ``drop(role="confirm", nth=3)``.

Each function is named like its effect. Arguments named like a setting of the effect go to the effect,
``name`` and ``realism`` to the fault, all others to the `Match`; the effect's settings may be given by
position: ``latency(0.3, jitter=0.1, role="confirm")``. What each setting is stands with the effect's class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from fakebrokers.core.frames import Role
from fakebrokers.faults import effects
from fakebrokers.faults.making import EndArgs, FaultArgs, InjectArgs, RoleWord, builder, fault, sweep
from fakebrokers.faults.plan import Fault

__all__ = ["fault", "sweep"]


@builder(effects.BlackHole)
def black_hole(for_s: float | None = None, **fault: Unpack[FaultArgs]) -> Fault:
    """New connects hang: the accept queue is full. Those that are open go on."""


@builder(effects.Coalesce)
def coalesce(frames: int | None = None, within_s: float = 0.02, **fault: Unpack[FaultArgs]) -> Fault:
    """This frame and the next ones leave in one write; an end of the connection comes after them."""


@builder(effects.Corrupt)
def corrupt(
    at: int | None = None,
    of: Literal["frame", "stream"] = "frame",
    xor: int = 0xFF,
    length: int = 1,
    mend: bool = False,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """Flips bits in the frame's bytes."""


@builder(effects.Crash)
def crash(
    how: Literal["rst", "fin"] = "rst",
    restart_s: float | None = 0.0,
    keep_state: bool = True,
    pass_frame: bool = False,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """The broker crashes: all connections end, nothing listens."""


@builder(effects.Delay)
def delay(seconds: float, jitter: float = 0.0, **fault: Unpack[FaultArgs]) -> Fault:
    """The frame is late, the ones after it pass."""


@builder(effects.Drop)
def drop(**fault: Unpack[FaultArgs]) -> Fault:
    """The frame is lost; everything else goes on."""


@builder(effects.Duplicate)
def duplicate(times: int = 1, after_s: float = 0.0, **fault: Unpack[EndArgs]) -> Fault:
    """The frame comes again, `times` times, right after itself or later."""


@builder(effects.Extend)
def extend(hex: str, **fault: Unpack[FaultArgs]) -> Fault:
    """More bytes at the end of the frame; its size field counts them."""


@builder(effects.Fin)
def fin(pass_frame: bool = True, after_s: float = 0.0, **fault: Unpack[EndArgs]) -> Fault:
    """An orderly TCP end, after everything that was said before, however late faults make it."""


@builder(effects.HalfOpen)
def half_open(pass_frame: bool = True, after_s: float = 0.0, **fault: Unpack[EndArgs]) -> Fault:
    """The broker's host vanishes: nothing is read or written any more, and no FIN comes."""


@builder(effects.Hold)
def hold(
    behind: bool = False,
    spare: Sequence[Role | RoleWord] = (),
    for_s: float | None = None,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """The frame waits until `faults.release(name)`."""


@builder(effects.Inject)
def inject(
    kind: str = "",
    fields: Mapping[str, Any] = ...,
    hex: str = "",
    place: Literal["before", "after"] = "after",
    times: int = 1,
    **fault: Unpack[InjectArgs],
) -> Fault:
    """Says a frame, or raw bytes, that the broker never meant to say."""


@builder(effects.Join)
def join(within_s: float = 0.5, **fault: Unpack[FaultArgs]) -> Fault:
    """The messages of several frames of one kind come in one; a frame of another kind comes before them."""


@builder(effects.Latency)
def latency(seconds: float, jitter: float = 0.0, **fault: Unpack[FaultArgs]) -> Fault:
    """The frame and everything after it waits; order is kept."""


@builder(effects.Overwrite)
def overwrite(
    at: int,
    width: Literal[1, 2, 4, 8] = 4,
    value: int | None = None,
    add: int | None = None,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """A number in the frame's bytes is another one, whatever it means; big-endian, nothing is recomputed."""


@builder(effects.Refuse)
def refuse(for_s: float | None = None, **fault: Unpack[FaultArgs]) -> Fault:
    """No listener: new connections are refused. Those that are open go on."""


@builder(effects.Reorder)
def reorder(
    window: int = 2,
    order: Literal["reverse", "shuffle"] = "reverse",
    within_s: float = 0.5,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """Collects `window` matching frames and lets them go in another order."""


@builder(effects.Reply)
def reply(
    code: int,
    fields: Mapping[str, Any] = ...,
    tail_hex: str = "",
    pass_request: bool = False,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """The broker never sees the request; the client gets this error code for it."""


@builder(effects.Rewrite)
def rewrite(fields: Mapping[str, Any], **fault: Unpack[FaultArgs]) -> Fault:
    """Fields get other values."""


@builder(effects.Rst)
def rst(pass_frame: bool = True, after_s: float = 0.0, **fault: Unpack[EndArgs]) -> Fault:
    """A TCP reset."""


@builder(effects.ShiftClock)
def shift_clock(seconds: float, **fault: Unpack[FaultArgs]) -> Fault:
    """The wall clock that the broker reports jumps."""


@builder(effects.Silent)
def silent(
    spare: Sequence[Role | RoleWord] = (),
    for_s: float | None = None,
    pass_frame: bool = False,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """From here on the client hears nothing; what it sends is still read and acted upon."""


@builder(effects.Slice)
def slice_(
    size: int | None = None,
    at: int | None = None,
    of: Literal["frame", "stream"] = "frame",
    parts: int | None = None,
    up_to: int | None = None,
    walk: bool = False,
    gap_s: float = 0.001,
    gap: Literal["fixed", "random"] = "fixed",
    gap_bytes: int | None = None,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """The frame's bytes leave in several writes."""


@builder(effects.Split)
def split(reverse: bool = False, **fault: Unpack[FaultArgs]) -> Fault:
    """The messages of a frame come in a frame each; a frame that carries none is as it was."""


@builder(effects.Stall)
def stall(for_s: float | None = None, **fault: Unpack[FaultArgs]) -> Fault:
    """The broker stops reading from this client; it goes on writing."""


@builder(effects.Throttle)
def throttle(bytes_per_s: int, **fault: Unpack[FaultArgs]) -> Fault:
    """So many bytes per second, this frame and everything after it in line."""


@builder(effects.Truncate)
def truncate(
    keep: int | None = None,
    of: Literal["frame", "stream"] = "frame",
    share: float = 0.5,
    mend: bool = False,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """Only the first bytes of the frame leave. Usually an end of the connection comes after it."""
