"""What a decoder of the judge and a codec of a fake make of the same bytes, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from conformance.decoders import Decoder
from fakebrokers.core.frames import Frame, Malformed

Garbage = Callable[[Malformed], bool]


def read(decoder: Decoder, units: Iterable[Any]) -> list[tuple[Frame, int]]:
    """All frames of these units, with their sizes."""
    return [found for unit in units for found in decoder.feed(unit)]


def assert_alike(codec: Decoder, decoder: Decoder, units: Iterable[Any], is_garbage: Garbage) -> None:
    """Same frames of the same sizes, and the same bytes left; what is malformed has the same consequences.

    Where one takes bytes for garbage, what comes behind them is read by nobody.
    """
    for unit in units:
        theirs, ours = list(codec.feed(unit)), list(decoder.feed(unit))
        assert plain(ours, is_garbage) == plain(theirs, is_garbage)
        if any(isinstance(frame, Malformed) and is_garbage(frame) for frame, _ in theirs):
            return
        assert decoder.partial == codec.partial


def plain(found: Iterable[tuple[Frame, int]], is_garbage: Garbage) -> list[Any]:
    """Frames and sizes, up to the first garbage; `Malformed` without its words."""
    rows: list[Any] = []
    for frame, size in found:
        if isinstance(frame, Malformed):
            rows.append((Malformed, is_garbage(frame), size))
            if is_garbage(frame):
                break
        else:
            rows.append((type(frame), frame, size))
    return rows


def is_stricter(frame: Frame) -> bool:
    """Whether the judge cannot read in NATS what a server reads.

    To the judge the end of a line is two bytes, a PING is that word alone, a size has nine digits.
    """
    stricter = ("a control", "a word that goes on", "a size", "a payload")
    return isinstance(frame, Malformed) and frame.problem.startswith(stricter)


def with_a_byte_changed(data: bytes, at: int, value: int) -> bytes:
    """The same with another byte at one place, counted around."""
    at %= max(len(data), 1)
    return data[:at] + bytes([value]) + data[at + 1 :]
