"""What befalls the whole broker."""

from __future__ import annotations

from typing import Literal

from fakebrokers.core.session import HangUp
from fakebrokers.faults.effect import Effect, Passage


class Refuse(Effect, frozen=True, tag="refuse"):
    """No listener: new connections are refused. Those that stand go on.

    Attributes:
        for_s: For so long; None until the fault is released.
    """

    needs_frame = False
    once = True
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host("refuse", for_s=self.for_s)


class BlackHole(Effect, frozen=True, tag="black-hole"):
    """New connects hang: the accept queue is full. Those that stand go on.

    Attributes:
        for_s: For so long; None until the fault is released.
    """

    needs_frame = False
    once = True
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host("black_hole", for_s=self.for_s)


class Crash(Effect, frozen=True, tag="crash"):
    """The broker dies: all connections end, nothing listens.

    Attributes:
        how: What the clients see.
        restart_s: It comes back after so many seconds; None stays down.
        keep_state: Whether it comes back with what it had stored.
        pass_frame: Whether the frame that matched is still handled (or sent).
    """

    needs_frame = False
    last = True
    how: Literal["rst", "fin"] = "rst"
    restart_s: float | None = 0.0
    keep_state: bool = True
    pass_frame: bool = False

    def apply(self, passage: Passage) -> None:
        if not self.pass_frame:
            passage.forget()
        passage.hang_up(HangUp(self.how))
        passage.host("crash", how=self.how, restart_s=self.restart_s, keep_state=self.keep_state)


class ShiftClock(Effect, frozen=True, tag="shift-clock"):
    """The wall clock that the broker reports jumps.

    Attributes:
        seconds: By so much, forwards or (negative) backwards.
    """

    needs_frame = False
    once = True
    seconds: float

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host("shift_clock", seconds=self.seconds)
