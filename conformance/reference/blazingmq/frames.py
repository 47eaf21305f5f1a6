"""Bytes to frames and back."""

from __future__ import annotations

from collections.abc import Iterator

from fakebrokers.blazingmq.codec import BlazingCodec
from fakebrokers.core.frames import Frame

EVENT_MAX = 128 << 20


class Frames:
    """Of one connection."""

    def __init__(self) -> None:
        self.codec = BlazingCodec(max_event=EVENT_MAX)

    def encode(self, frame: Frame) -> bytes:
        """One event. Raises `WireError` if it does not fit."""
        return self.codec.encode(frame)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes."""
        for frame, _ in self.codec.feed(data):
            yield frame
