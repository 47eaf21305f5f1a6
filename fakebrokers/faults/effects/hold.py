"""The frame waits until a test lets it go."""

from __future__ import annotations

from fakebrokers.faults.effect import Effect, Passage


class Hold(Effect, frozen=True, tag="hold"):
    """The frame waits until `faults.release(name)`.

    Attributes:
        behind: Everything behind it waits too.
        for_s: Or until so many seconds have passed.
    """

    needs_frame = False
    behind: bool = False
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        if self.behind or passage.frame is None:
            passage.hold_lane(self.for_s)
            if passage.frame is not None:
                passage.pass_on(passage.frame)
        else:
            passage.park(passage.frame, self.for_s)
