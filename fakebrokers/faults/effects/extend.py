"""The frame is longer than it should be."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Extend(Effect, frozen=True, tag="extend"):
    """More bytes at the end of the frame; its size field counts them.

    Attributes:
        hex: The bytes, in hexadecimal digits.
    """

    needs_bytes = True
    takes_raw = True
    realism = Realism.ILLEGAL
    hex: str

    def apply(self, passage: Passage) -> None:
        passage.pass_raw(passage.mend(passage.data + bytes.fromhex(self.hex)))

    def check(self, path: str) -> None:
        try:
            bytes.fromhex(self.hex)
        except ValueError:
            raise PlanError(f"{path}.hex", f"expected hexadecimal digits, got {self.hex!r}") from None
