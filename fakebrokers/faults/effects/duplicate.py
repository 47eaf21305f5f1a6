"""The frame comes more than once."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import MOST_TIMES, Effect, Passage, Realism


class Duplicate(Effect, frozen=True, tag="duplicate"):
    """The frame comes again, `times` times, right after itself or later.

    Attributes:
        times: How often.
        after_s: By how many seconds it is late each time; what comes after it passes.
    """

    takes_raw = True
    realism = Realism.ILLEGAL
    times: int = 1
    after_s: float = 0.0

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        for _ in range(self.times):
            passage.pass_through(self.after_s)

    def check(self, path: str) -> None:
        if not 1 <= self.times <= MOST_TIMES:
            raise PlanError(f"{path}.times", f"expected a count from 1 to {MOST_TIMES}, got {self.times}")
        if self.after_s < 0:
            raise PlanError(f"{path}.after_s", f"expected seconds from 0, got {self.after_s}")
