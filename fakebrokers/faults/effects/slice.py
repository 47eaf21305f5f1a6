"""Frames in several writes, several frames in one write, few bytes per second."""

from __future__ import annotations

from typing import Literal

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Slice(Effect, frozen=True, tag="slice"):
    """The frame's bytes leave in several writes.

    Attributes:
        size: So many bytes in each write.
        at: Or cut once, at this offset (negative: from the end).
        of: Whether `at` counts in the frame, or in the connection's whole stream.
        parts: Or so many writes, of about one size.
        up_to: Or in pieces of 1 to `up_to` bytes, drawn from the seed.
        walk: Or cut the first frame of a kind at byte 1, the second of that kind at byte 2 ...
        gap_s: Seconds between two writes.
        gap: Whether each gap is that long, or drawn from 0 to that.
        gap_bytes: Gaps only within the first `gap_bytes` bytes of the connection; None everywhere.
    """

    needs_bytes = True
    takes_raw = True
    direction = "out"
    realism = Realism.LEGAL
    size: int | None = None
    at: int | None = None
    of: Literal["frame", "stream"] = "frame"
    parts: int | None = None
    up_to: int | None = None
    walk: bool = False
    gap_s: float = 0.001
    gap: Literal["fixed", "random"] = "fixed"
    gap_bytes: int | None = None

    def apply(self, passage: Passage) -> None:
        pieces = [piece for piece in self._pieces(passage.data, passage) if piece]
        gaps = []
        place = passage.offset
        for piece in pieces:
            place += len(piece)
            spaced = self.gap_bytes is None or place < self.gap_bytes
            gaps.append(self._gap(passage) if spaced else 0.0)
        if self.at is not None or self.walk:
            gaps[-1:] = [0.0]
        passage.pass_pieces(pieces, gaps)

    def _gap(self, passage: Passage) -> float:
        return passage.random.uniform(0, self.gap_s) if self.gap == "random" else self.gap_s

    def _pieces(self, data: bytes, passage: Passage) -> list[bytes]:
        if self.walk:
            cut = self._next_cut(passage)
            return [data[:cut], data[cut:]]
        if self.at is not None:
            at = max(0, self.at - passage.offset) if self.of == "stream" else self.at
            return [data[:at], data[at:]]
        size = self.size if self.parts is None else max(1, len(data) // self.parts)
        if size is not None:
            return [data[i : i + size] for i in range(0, len(data), size)]
        pieces, start = [], 0
        while start < len(data):
            stop = start + passage.random.randint(1, self.up_to or 1)
            pieces.append(data[start:stop])
            start = stop
        return pieces

    def _next_cut(self, passage: Passage) -> int:
        kind = type(passage.frame).__name__
        passage.memory[kind] = cut = passage.memory.get(kind, 0) + 1
        return int(cut)

    def check(self, path: str) -> None:
        if sum(each is not None for each in (self.size, self.at, self.parts, self.up_to)) + self.walk != 1:
            raise PlanError(path, 'expected one of "size", "at", "parts", "up_to" and "walk"')
        for name in ("size", "parts", "up_to"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise PlanError(f"{path}.{name}", f"expected a count from 1, got {value}")
        if self.gap_s < 0:
            raise PlanError(f"{path}.gap_s", f"expected seconds from 0, got {self.gap_s}")
        if self.of == "stream" and (self.at is None or self.at < 0):
            raise PlanError(f"{path}.at", f'expected an offset from 0 with of = "stream", got {self.at}')


class Coalesce(Effect, frozen=True, tag="coalesce"):
    """This frame and the next ones leave in one write; an end of the connection comes after them.

    Attributes:
        frames: How many together; None for all that come within `within_s`.
        within_s: What is there after `within_s` seconds leaves all the same.
    """

    direction = "out"
    realism = Realism.LEGAL
    frames: int | None = None
    within_s: float = 0.02

    def apply(self, passage: Passage) -> None:
        passage.gather(self.frames, self.within_s)
        passage.pass_through()

    def check(self, path: str) -> None:
        if self.frames is not None and self.frames < 2:
            raise PlanError(f"{path}.frames", f"expected a count from 2, got {self.frames}")
        if self.within_s <= 0:
            raise PlanError(f"{path}.within_s", f"expected seconds above 0, got {self.within_s}")


class Throttle(Effect, frozen=True, tag="throttle"):
    """So many bytes per second, this frame and everything after it in line.

    Outwards the bytes leave in 20 writes per second. Inwards the broker hears a frame when its last byte
    would have come, and reads no further than a little ahead of that.

    Attributes:
        bytes_per_s: The bandwidth.
    """

    needs_bytes = True
    takes_raw = True
    bytes_per_s: int

    def apply(self, passage: Passage) -> None:
        if passage.direction == "in":
            passage.pass_slowly(passage.size / self.bytes_per_s)
            return
        data = passage.data
        step = max(1, self.bytes_per_s // 20)
        pieces = [data[i : i + step] for i in range(0, len(data), step)]
        passage.pass_pieces(pieces, [len(piece) / self.bytes_per_s for piece in pieces])

    def check(self, path: str) -> None:
        if self.bytes_per_s < 1:
            raise PlanError(f"{path}.bytes_per_s", f"expected a count from 1, got {self.bytes_per_s}")
