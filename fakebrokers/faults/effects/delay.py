"""The frame is late; others may overtake it."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage


class Delay(Effect, frozen=True, tag="delay"):
    """The frame is late, the ones behind it pass.

    Attributes:
        seconds: By how much.
        jitter: Plus or minus so many seconds, drawn from the seed.
    """

    seconds: float
    jitter: float = 0.0

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        passage.pass_on(passage.frame, max(0.0, self.seconds + _draw(passage, self.jitter)))

    def check(self, path: str) -> None:
        if self.seconds < 0:
            raise PlanError(f"{path}.seconds", f"expected seconds from 0, got {self.seconds}")


class Latency(Effect, frozen=True, tag="latency"):
    """The frame and everything behind it waits; order is kept.

    Attributes:
        seconds: By how much.
        jitter: Plus or minus so many seconds, drawn from the seed.
    """

    seconds: float
    jitter: float = 0.0

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        passage.push_back(max(0.0, self.seconds + _draw(passage, self.jitter)))
        passage.pass_on(passage.frame)

    def check(self, path: str) -> None:
        if self.seconds < 0:
            raise PlanError(f"{path}.seconds", f"expected seconds from 0, got {self.seconds}")


def _draw(passage: Passage, jitter: float) -> float:
    return passage.random.uniform(-jitter, jitter) if jitter else 0.0
