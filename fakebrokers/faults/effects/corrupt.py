"""Bytes of the frame flip."""

from __future__ import annotations

from typing import Literal

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Corrupt(Effect, frozen=True, tag="corrupt"):
    """Flips bits in the frame's bytes.

    Attributes:
        at: Offset in the frame, from 0 (its length prefix included); negative counts from the end;
            None draws one from the seed, after the length prefix if the frame has one.
        of: Whether `at` counts in the frame, or in the connection's whole stream of this direction.
        xor: Mask for each byte.
        length: How many bytes in a row.
        mend: Make the frame's checksum right again, so that only the content is wrong.
    """

    needs_bytes = True
    takes_raw = True
    realism = Realism.ILLEGAL
    at: int | None = None
    of: Literal["frame", "stream"] = "frame"
    xor: int = 0xFF
    length: int = 1
    mend: bool = False

    def apply(self, passage: Passage) -> None:
        data = bytearray(passage.data)
        start = self._start(len(data), passage)
        for place in range(max(0, start), min(len(data), start + self.length)):
            data[place] ^= self.xor
        passage.pass_raw(passage.mend(bytes(data)) if self.mend else bytes(data))

    def _start(self, size: int, passage: Passage) -> int:
        if self.at is None:
            return passage.random.randrange(min(4, max(0, size - 1)), max(1, size))
        if self.of == "stream":
            return self.at - passage.offset
        return self.at + size if self.at < 0 else self.at

    def check(self, path: str) -> None:
        if not 1 <= self.xor <= 0xFF:
            raise PlanError(f"{path}.xor", f"expected 1..255, got {self.xor}")
        if self.length < 1:
            raise PlanError(f"{path}.length", f"expected a count from 1, got {self.length}")
        if self.of == "stream" and (self.at is None or self.at < 0):
            raise PlanError(f"{path}.at", f'expected an offset from 0 with of = "stream", got {self.at}')
