"""What travels through the fault pipe."""

from __future__ import annotations

from typing import Any

import msgspec

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import HangUp


class Parcel(msgspec.Struct, kw_only=True, eq=False):
    """A frame, raw bytes in its place, or the end of the connection; all times in seconds.

    Attributes:
        frame: The frame; with `raw` the one that the bytes stand for, if any.
        envelope: The frame that `frame` came inside of and leaves in; None where it stands by itself.
        unit: The frame's unit as the codec made it, if it has been asked already.
        raw: A unit to be written as it is instead of the frame.
        complete: With `raw`: with these bytes all of `frame` has left.
        end: The connection ends here.
        half: With `end`: only the fake's own direction does, with FIN; it reads on.
        items: Which items of the frame that came into the pipe are in this one; None if it is another.
        fault: Names of the faults that made or touched it, comma separated.
        final: No fault touches it any more.
        alone: It leaves in a write of its own.
        delay_s: Seconds by which it leaves later; others may overtake it.
        hold_s: Seconds before which neither it nor anything after it leaves.
        transmit_s: Seconds that it needs after what is before it in line.
        gap_s: Seconds after it before which nothing follows.
        size: Bytes on the wire, for the lane's account.
        total: Of the last of several pieces: the bytes of all.
    """

    frame: Frame | None = None
    envelope: Frame | None = None
    unit: Any = None
    raw: Any = None
    complete: bool = False
    end: HangUp | None = None
    half: bool = False
    items: tuple[int, ...] | None = None
    fault: str = ""
    final: bool = False
    alone: bool = False
    delay_s: float = 0.0
    hold_s: float = 0.0
    transmit_s: float = 0.0
    gap_s: float = 0.0
    size: int = 0
    total: int = 0

    @property
    def whole(self) -> Frame:
        """The frame as it stands on the wire, in its envelope if it has one."""
        assert self.frame is not None
        if self.envelope is None:
            return self.frame
        assert self.envelope.spec.inside is not None
        return self.envelope.spec.inside.wrap(self.envelope, self.frame)


def unit_size(unit: Any) -> int:
    """Bytes of a unit: of a multipart message the sum of its parts."""
    return sum(map(len, unit)) if isinstance(unit, tuple) else len(unit)
