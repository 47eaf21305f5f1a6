"""A number in the frame's bytes is another one."""

from __future__ import annotations

from typing import Literal

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Overwrite(Effect, frozen=True, tag="overwrite"):
    """A number in the frame's bytes is another one, whatever it means; big-endian, nothing is recomputed.

    Attributes:
        at: Its offset in the frame, from 0 (the length prefix included). A frame that ends before stays.
        width: Its bytes.
        value: What is there then.
        add: Or what is added to it; it wraps.
    """

    needs_bytes = True
    takes_raw = True
    realism = Realism.ILLEGAL
    at: int
    width: Literal[1, 2, 4, 8] = 4
    value: int | None = None
    add: int | None = None

    def apply(self, passage: Passage) -> None:
        data = bytes(passage.data)
        end = self.at + self.width
        if end > len(data):
            passage.pass_through()
            return
        there = int.from_bytes(data[self.at : end])
        new = self.value if self.value is not None else (there + (self.add or 0)) % (1 << 8 * self.width)
        passage.pass_raw(data[: self.at] + new.to_bytes(self.width) + data[end:])

    def check(self, path: str) -> None:
        most = (1 << 8 * self.width) - 1
        if self.at < 0:
            raise PlanError(f"{path}.at", f"expected an offset from 0, got {self.at}")
        if (self.value is None) == (self.add is None):
            raise PlanError(path, 'expected either "value" or "add"')
        if self.value is not None and not 0 <= self.value <= most:
            raise PlanError(
                f"{path}.value", f"expected 0..{most}, which {self.width} bytes hold, got {self.value}"
            )
