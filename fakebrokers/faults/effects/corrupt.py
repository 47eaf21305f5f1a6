"""Bytes of the frame flip."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Corrupt(Effect, frozen=True, tag="corrupt"):
    """Flips bits in the frame's bytes.

    Attributes:
        at: Offset in the frame, from 0 (its length prefix included); negative counts from the end;
            None draws one from the seed, behind the length prefix if the frame has one.
        xor: Mask for each byte.
        length: How many bytes in a row.
        mend: Make the frame's checksum right again, so that only the content is wrong.
    """

    needs_bytes = True
    realism = Realism.ILLEGAL
    at: int | None = None
    xor: int = 0xFF
    length: int = 1
    mend: bool = False

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        data = bytearray(passage.encode(passage.frame))
        start = passage.random.randrange(min(4, len(data) - 1), len(data)) if self.at is None else self.at
        start = start + len(data) if start < 0 else start
        for place in range(max(0, start), min(len(data), start + self.length)):
            data[place] ^= self.xor
        passage.pass_raw(passage.mend(bytes(data)) if self.mend else bytes(data))

    def check(self, path: str) -> None:
        if not 1 <= self.xor <= 0xFF:
            raise PlanError(f"{path}.xor", f"expected 1..255, got {self.xor}")
        if self.length < 1:
            raise PlanError(f"{path}.length", f"expected a count from 1, got {self.length}")
