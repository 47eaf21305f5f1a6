"""The broker reads on and says nothing."""

from __future__ import annotations

from fakebrokers.core.frames import Role
from fakebrokers.faults.effect import Effect, Passage


class Silent(Effect, frozen=True, tag="silent"):
    """From here on the client hears nothing; what it sends is still read and acted upon.

    Attributes:
        spare: Roles that are still said, such as ``heartbeat``.
        for_s: For so long; None until the fault is released.
        pass_frame: Whether the frame that matched is the last one that leaves. A client's frame that
            matched is always heard.
    """

    needs_frame = False
    once = True
    spare: tuple[Role, ...] = ()
    for_s: float | None = None
    pass_frame: bool = False

    def apply(self, passage: Passage) -> None:
        passage.silence(self.spare, self.for_s)
        if self.pass_frame or passage.direction == "in":
            passage.pass_through()
