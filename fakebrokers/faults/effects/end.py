"""The connection ends, or seems to live."""

from __future__ import annotations

from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.session import HangUp


class _End(Effect, frozen=True, tag="_end"):
    """The connection ends behind the frame that matched.

    Attributes:
        pass_frame: Whether that frame still leaves (the broker still hears it).
    """

    needs_frame = False
    last = True
    pass_frame: bool = True

    def apply(self, passage: Passage) -> None:
        if not self.pass_frame:
            passage.forget()
        passage.hang_up(self.how())

    def how(self) -> HangUp:
        """In which way."""
        raise NotImplementedError


class Fin(_End, frozen=True, tag="fin"):
    """An orderly TCP end."""

    def how(self) -> HangUp:
        return HangUp.FIN


class Rst(_End, frozen=True, tag="rst"):
    """A TCP reset."""

    def how(self) -> HangUp:
        return HangUp.RST


class HalfOpen(_End, frozen=True, tag="half-open"):
    """The broker's host vanishes: nothing is read or written any more, and no FIN comes."""

    def how(self) -> HangUp:
        return HangUp.HALF_OPEN


class Stall(Effect, frozen=True, tag="stall"):
    """The broker stops reading from this client; it goes on writing.

    Attributes:
        for_s: For so long; None until the fault is released.
    """

    needs_frame = False
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        if passage.frame is not None:
            passage.pass_on(passage.frame)
        passage.stop_reading(self.for_s)
