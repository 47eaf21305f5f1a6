"""The broker reads on and says nothing."""

from __future__ import annotations

from fakebrokers.faults.effect import Effect, Passage


class Silent(Effect, frozen=True, tag="silent"):
    """From here on the client hears nothing; what it sends is still read and acted upon.

    Attributes:
        spare: Roles that are still said, such as ``heartbeat``.
        for_s: For so long; None until the fault is released.
    """

    needs_frame = False
    spare: tuple[str, ...] = ()
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        passage.silence(self.spare, self.for_s)
        if passage.frame is not None and passage.direction == "in":
            passage.pass_on(passage.frame)
