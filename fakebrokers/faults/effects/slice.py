"""Frames in several writes, several frames in one write."""

from __future__ import annotations

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Slice(Effect, frozen=True, tag="slice"):
    """The frame's bytes leave in several writes.

    Attributes:
        size: So many bytes in each write.
        at: Or cut once, at this offset (negative: from the end).
        up_to: Or in pieces of 1 to so many bytes, drawn from the seed.
        gap_s: Seconds between two writes.
    """

    needs_bytes = True
    direction = "out"
    realism = Realism.LEGAL
    size: int | None = None
    at: int | None = None
    up_to: int | None = None
    gap_s: float = 0.001

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        data = passage.encode(passage.frame)
        passage.pass_pieces([piece for piece in self._pieces(data, passage) if piece], self.gap_s)

    def _pieces(self, data: bytes, passage: Passage) -> list[bytes]:
        if self.at is not None:
            return [data[: self.at], data[self.at :]]
        if self.size is not None:
            return [data[i : i + self.size] for i in range(0, len(data), self.size)]
        pieces, start = [], 0
        while start < len(data):
            stop = start + passage.random.randint(1, self.up_to or 1)
            pieces.append(data[start:stop])
            start = stop
        return pieces

    def check(self, path: str) -> None:
        if sum(value is not None for value in (self.size, self.at, self.up_to)) != 1:
            raise PlanError(path, 'expected one of "size", "at" and "up_to"')
        for name in ("size", "up_to"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise PlanError(f"{path}.{name}", f"expected a count from 1, got {value}")


class Coalesce(Effect, frozen=True, tag="coalesce"):
    """This frame and the next ones leave in one write.

    Attributes:
        frames: How many together.
        within_s: What is there after so many seconds leaves all the same.
    """

    direction = "out"
    realism = Realism.LEGAL
    frames: int = 2
    within_s: float = 0.02

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        passage.gather(self.frames, self.within_s)
        passage.pass_on(passage.frame)

    def check(self, path: str) -> None:
        if self.frames < 2:
            raise PlanError(f"{path}.frames", f"expected a count from 2, got {self.frames}")


class Throttle(Effect, frozen=True, tag="throttle"):
    """So many bytes per second, this frame and everything behind it in line.

    Attributes:
        bytes_per_s: The bandwidth.
    """

    needs_bytes = True
    direction = "out"
    bytes_per_s: int

    def apply(self, passage: Passage) -> None:
        assert passage.frame is not None
        data = passage.encode(passage.frame)
        step = max(1, self.bytes_per_s // 20)
        pieces = [data[i : i + step] for i in range(0, len(data), step)]
        passage.pass_pieces(pieces, step / self.bytes_per_s)
        passage.push_back_more(len(pieces[-1]) / self.bytes_per_s)

    def check(self, path: str) -> None:
        if self.bytes_per_s < 1:
            raise PlanError(f"{path}.bytes_per_s", f"expected a count from 1, got {self.bytes_per_s}")
