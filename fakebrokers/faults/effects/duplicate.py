"""The frame comes more than once."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import MOST_TIMES, Effect, Passage, Realism


class Duplicate(Effect, frozen=True, tag="duplicate"):
    """The frame comes again, `times` times, right after itself."""

    takes_raw = True
    realism = Realism.ILLEGAL
    times: int = 1

    def apply(self, passage: Passage) -> None:
        for _ in range(self.times + 1):
            passage.pass_through()

    def check(self, path: str) -> None:
        if not 1 <= self.times <= MOST_TIMES:
            raise PlanError(f"{path}.times", f"expected a count from 1 to {MOST_TIMES}, got {self.times}")
