"""The frame waits until a test lets it go."""

from __future__ import annotations

from fakebrokers.core.frames import Role
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage


class Hold(Effect, frozen=True, tag="hold"):
    """The frame waits until `faults.release(name)`.

    Attributes:
        behind: Everything after it waits too.
        spare: Roles that pass all the same, such as ``heartbeat`` (without `behind`).
        for_s: Or until `for_s` seconds have passed.
    """

    needs_frame = False
    behind: bool = False
    spare: tuple[Role, ...] = ()
    for_s: float | None = None

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if self.behind or frame is None:
            passage.hold_lane(self.for_s)
            passage.pass_through()
        elif passage.role in self.spare:
            passage.pass_through()
        else:
            passage.park(frame, self.for_s)

    def check(self, path: str) -> None:
        if self.behind and self.spare:
            raise PlanError(f"{path}.spare", "expected none with behind = true: order would be lost")
