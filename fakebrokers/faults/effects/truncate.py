"""Only the front of the frame leaves."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Truncate(Effect, frozen=True, tag="truncate"):
    """Only the first bytes of the frame leave. Usually an end of the connection comes behind it.

    Attributes:
        keep: So many bytes; negative leaves out so many at the end.
        share: Or this share of the frame (0..1); at least one byte stays, and one is lost.
    """

    needs_bytes = True
    keep: int | None = None
    share: float = 0.5

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        data = passage.encode(passage.frame)
        if self.keep is not None:
            passage.pass_raw(data[: self.keep])
        else:
            passage.pass_raw(data[: min(len(data) - 1, max(1, int(len(data) * self.share)))])

    def check(self, path: str) -> None:
        if not 0 <= self.share <= 1:
            raise PlanError(f"{path}.share", f"expected 0..1, got {self.share}")
