"""Frames change places."""

from __future__ import annotations

from typing import Literal

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Reorder(Effect, frozen=True, tag="reorder"):
    """Collects `window` matching frames and lets them go in another order.

    Attributes:
        window: How many.
        order: ``reverse``, or ``shuffle`` by the seed.
        within_s: If they do not come in that time, those that are there go on as they came.
    """

    realism = Realism.ILLEGAL
    window: int = 2
    order: Literal["reverse", "shuffle"] = "reverse"
    within_s: float = 0.5

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        waiting = passage.unpark()
        waiting.append(passage.frame)
        if len(waiting) < self.window:
            for frame in waiting:
                passage.park(frame, self.within_s)
            return
        if self.order == "reverse":
            waiting.reverse()
        else:
            passage.random.shuffle(waiting)
        for frame in waiting:
            passage.pass_on(frame)

    def check(self, path: str) -> None:
        if self.window < 2:
            raise PlanError(f"{path}.window", f"expected a count from 2, got {self.window}")
