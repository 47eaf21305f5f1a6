"""The frame is late."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage


class Delay(Effect, frozen=True, tag="delay"):
    """The frame is late, the ones after it pass.

    Attributes:
        seconds: By how much.
        jitter: Plus or minus up to `jitter` seconds, drawn from the seed.
    """

    takes_raw = True
    seconds: float
    jitter: float = 0.0

    def apply(self, passage: Passage) -> None:
        passage.pass_through(_draw(passage, self.seconds, self.jitter))

    def check(self, path: str) -> None:
        _check(self.seconds, self.jitter, path)


class Latency(Effect, frozen=True, tag="latency"):
    """The frame and everything after it waits; order is kept.

    Attributes:
        seconds: By how much.
        jitter: Plus or minus up to `jitter` seconds, drawn from the seed.
    """

    takes_raw = True
    seconds: float
    jitter: float = 0.0

    def apply(self, passage: Passage) -> None:
        passage.push_back(_draw(passage, self.seconds, self.jitter))
        passage.pass_through()

    def check(self, path: str) -> None:
        _check(self.seconds, self.jitter, path)


def _draw(passage: Passage, seconds: float, jitter: float) -> float:
    return max(0.0, seconds + passage.random.uniform(-jitter, jitter)) if jitter else seconds


def _check(seconds: float, jitter: float, path: str) -> None:
    for name, value in (("seconds", seconds), ("jitter", jitter)):
        if value < 0:
            raise PlanError(f"{path}.{name}", f"expected seconds from 0, got {value}")
