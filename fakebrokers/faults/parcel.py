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
        unit: The frame's unit as the codec made it, if it has been asked already.
        raw: A unit to be written as it is instead of the frame.
        complete: With `raw`: with these bytes all of `frame` has left.
        end: The connection ends here.
        items: Which items of the frame that came into the pipe are in this one; None if it is another.
        fault: Names of the faults that made or touched it, comma separated.
        final: No fault touches it any more.
        alone: It leaves in a write of its own.
        late: It leaves so much later; others may overtake it.
        wait: It and everything behind it leaves no earlier than in so much time.
        takes: It needs so much time behind what is before it in line.
        gap: What is behind it follows no earlier than so much time after it.
        size: Bytes on the wire, for the lane's account.
        total: Of the last of several pieces: the bytes of all.
    """

    frame: Frame | None = None
    unit: Any = None
    raw: Any = None
    complete: bool = False
    end: HangUp | None = None
    items: tuple[int, ...] | None = None
    fault: str = ""
    final: bool = False
    alone: bool = False
    late: float = 0.0
    wait: float = 0.0
    takes: float = 0.0
    gap: float = 0.0
    size: int = 0
    total: int = 0
