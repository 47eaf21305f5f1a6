"""What a decoder of the judge and a codec of a fake make of the same bytes, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from conformance.decoders import Decoder
from fakebrokers.core.frames import Frame, Malformed

Garbage = Callable[[Malformed], bool]


def read(decoder: Decoder, units: Iterable[Any]) -> list[tuple[Frame, int]]:
    """All frames of these units, with their sizes."""
    return [found for unit in units for found in decoder.feed(unit)]


def differences(codec: Decoder, decoder: Decoder, units: Iterable[Any], is_garbage: Garbage) -> list[str]:
    """What is otherwise: frames, their sizes, the bytes left, the consequences of what is malformed.

    Where one takes bytes for garbage, what comes behind them is read by nobody.
    """
    for unit in units:
        theirs, ours = list(codec.feed(unit)), list(decoder.feed(unit))
        found = otherwise("frames", plain(theirs, is_garbage), plain(ours, is_garbage))
        if found or any(isinstance(frame, Malformed) and is_garbage(frame) for frame, _ in theirs):
            return found
        if decoder.partial != codec.partial:
            return otherwise("bytes left", codec.partial, decoder.partial)
    return []


def assert_alike(codec: Decoder, decoder: Decoder, units: Iterable[Any], is_garbage: Garbage) -> None:
    """That there are no `differences`."""
    nothing_of(differences(codec, decoder, units, is_garbage))


def otherwise(what: str, wanted: Any, found: Any) -> list[str]:
    """A problem with a name, if there is one."""
    return [] if wanted == found else [f"{what}:\n    wanted {wanted!r:.400}\n    found  {found!r:.400}"]


def nothing_of(problems: list[str]) -> None:
    """Fail with the first ones."""
    assert not problems, "\n".join([f"{len(problems)} problems", *problems[:20]])


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


def damaged(data: bytes, head: int, size: Callable[[int], bytes]) -> Iterator[bytes]:
    """A frame with a size in front, too short by any number of bytes, and with each byte changed.

    Args:
        head: Bytes of what is never changed, with the size.
        size: The size of a frame of so many bytes.
    """
    start = len(size(0))
    for end in range(start, len(data)):
        yield size(end) + data[start:end]
    for at in range(head, len(data)):
        yield with_a_byte_changed(data, at, data[at] ^ 0x81)


def with_a_byte_changed(data: bytes, at: int, value: int) -> bytes:
    """The same with another byte at one place, counted around."""
    at %= max(len(data), 1)
    return data[:at] + bytes([value]) + data[at + 1 :]
