"""Messages of several parts as bytes on their way: frames of ZMTP 3 (rfc.zeromq.org/spec/23), cut up.

libzmq gives its user whole messages only. A client with a transport of its own sees what comes of the bytes,
and so does one in memory that asks for it (`memory.connect`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from fakebrokers.pzq.frames import Parts

_MORE, _LONG = 1, 2  #: flags of a frame
_SHORT_MAX = 255  #: bytes of a part whose length takes one byte


def frame_of(part: bytes, *, more: bool) -> bytes:
    """A part as ZMTP frames it: flags, length in one byte or eight, the bytes."""
    flags = _MORE if more else 0
    if len(part) <= _SHORT_MAX:
        return bytes((flags, len(part))) + part
    return bytes((flags | _LONG,)) + len(part).to_bytes(8) + part


def frames_of(parts: Parts) -> list[bytes]:
    """A message as ZMTP frames it."""
    last = len(parts) - 1
    return [frame_of(part, more=number < last) for number, part in enumerate(parts)]


def borders(parts: Parts) -> list[int]:
    """Where the frames of a message begin but for the first, in bytes."""
    return list(accumulate(map(len, frames_of(parts))))[:-1]


class Piece:
    """Some bytes of a message, as a unit that a fault may send.

    Attributes:
        parts: The whole message.
        data: The bytes.
        is_last: The message is whole with it, if all others came.
    """

    __slots__ = ("data", "is_last", "parts")

    def __init__(self, parts: Parts, data: bytes, is_last: bool) -> None:
        self.parts = parts
        self.data = data
        self.is_last = is_last

    def __len__(self) -> int:
        return len(self.data)


def pieces(parts: Parts, points: Iterable[int]) -> list[Piece]:
    """A message cut after so many bytes; points outside it cut nothing."""
    data = b"".join(frames_of(parts))
    inside = sorted({point for point in points if 0 < point < len(data)})
    spans = pairwise((0, *inside, len(data)))
    return [Piece(parts, data[start:end], end == len(data)) for start, end in spans]


def bytes_of(units: Sequence[Any]) -> bytes:
    """What is on the way for these units."""
    return b"".join(
        unit.data if isinstance(unit, Piece) else b"".join(frames_of(parts_of(unit))) for unit in units
    )


def whole(units: Iterable[Any]) -> list[Parts]:
    """The messages that are whole with these units: all that libzmq gives, and all that it can send."""
    return [parts_of(unit) for unit in units if not isinstance(unit, Piece) or unit.is_last]


def parts_of(unit: Parts | bytes | Piece) -> Parts:
    """A unit's parts; bare bytes, as fault plans may write them, are one part."""
    if isinstance(unit, Piece):
        return unit.parts
    return (unit,) if isinstance(unit, bytes) else unit
