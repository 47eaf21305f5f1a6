"""Only the front of the frame leaves."""

from __future__ import annotations

from typing import Literal

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Truncate(Effect, frozen=True, tag="truncate"):
    """Only the first bytes of the frame leave. Usually an end of the connection comes after it.

    Attributes:
        keep: The first `keep` bytes; negative leaves out that many at the end.
        of: Whether `keep` counts in the frame, or in the connection's whole stream of this direction.
        share: Or this share of the frame (0..1); at least one byte stays, and one is lost.
        mend: Make the frame's size field and checksum right again: a whole frame, only shorter.
    """

    needs_bytes = True
    takes_raw = True
    realism = Realism.ENVIRONMENT
    keep: int | None = None
    of: Literal["frame", "stream"] = "frame"
    share: float = 0.5
    mend: bool = False

    def apply(self, passage: Passage) -> None:
        data = passage.data
        if self.keep is None:
            data = data[: min(len(data) - 1, max(1, int(len(data) * self.share)))]
        elif self.of == "stream":
            data = data[: max(0, self.keep - passage.offset)]
        else:
            data = data[: self.keep]
        passage.pass_raw(passage.mend(data) if self.mend else data)

    def check(self, path: str) -> None:
        if not 0 <= self.share <= 1:
            raise PlanError(f"{path}.share", f"expected 0..1, got {self.share}")
        if self.of == "stream" and (self.keep is None or self.keep < 0):
            raise PlanError(f"{path}.keep", f'expected a count from 0 with of = "stream", got {self.keep}')
