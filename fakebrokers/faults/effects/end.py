"""The connection ends, or seems to live."""

from __future__ import annotations

from typing import ClassVar

from fakebrokers.core.session import HangUp
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage


class EndOfConnection(Effect, frozen=True):
    """The connection ends after the frame that matched.

    Attributes:
        pass_frame: Whether that frame still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

    needs_frame = False
    last = True
    per_run = True
    how: ClassVar[HangUp]
    pass_frame: bool = True
    after_s: float = 0.0

    def apply(self, passage: Passage) -> None:
        if not self.pass_frame:
            passage.forget()
        passage.hang_up(self.how, self.after_s)

    def check(self, path: str) -> None:
        if self.after_s < 0:
            raise PlanError(f"{path}.after_s", f"expected seconds from 0, got {self.after_s}")


class Fin(EndOfConnection, frozen=True, tag="fin"):
    """An orderly TCP end, after everything that was said before, however late faults make it.

    Attributes:
        pass_frame: Whether the frame that matched still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

    how = HangUp.FIN


class Rst(EndOfConnection, frozen=True, tag="rst"):
    """A TCP reset.

    Attributes:
        pass_frame: Whether the frame that matched still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

    how = HangUp.RST


class HalfOpen(EndOfConnection, frozen=True, tag="half-open"):
    """The broker's host vanishes: nothing is read or written any more, and no FIN comes.

    Attributes:
        pass_frame: Whether the frame that matched still leaves (the broker still hears it).
        after_s: By how many seconds it comes later; until then all goes on.
    """

    how = HangUp.HALF_OPEN


class Stall(Effect, frozen=True, tag="stall"):
    """The broker stops reading from this client; it goes on writing.

    Attributes:
        for_s: For so long; None until the fault is released.
    """

    needs_frame = False
    once = True
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.stop_reading(self.for_s)
