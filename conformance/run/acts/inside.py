"""A passage at the level of the frame that is inside another one (a packet in a bus message).

Acts disturb what a frame means; where an envelope only carries it, that is the frame inside.
"""

from __future__ import annotations

from typing import Any

from fakebrokers.core.frames import Frame, Role
from fakebrokers.faults.effect import Passage


def opened(frame: Frame) -> Frame:
    """The frame inside, or the frame itself if it carries none that can be read."""
    inside = type(frame).spec.inside
    return (inside.open(frame) if inside is not None else None) or frame


def at_inside(passage: Passage) -> Passage:
    """The passage as acts see it: of the frame inside, if there is one."""
    frame = passage.frame
    if frame is None:
        return passage
    inner = opened(frame)
    return passage if inner is frame else _Inside(passage, frame, inner)


class _Inside:
    """Everything as the passage around it, but for the frame at hand."""

    def __init__(self, passage: Passage, envelope: Frame, inner: Frame) -> None:
        self._passage = passage
        self._envelope = envelope
        self.frame = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._passage, name)

    @property
    def role(self) -> Role:
        """That of the frame inside."""
        return type(self.frame).spec.role_in(self._passage.direction)

    def _closed(self, frame: Frame) -> Frame:
        """In the envelope that came, if it is for frames of this kind; else the session finds one."""
        inside = type(self._envelope).spec.inside
        if type(frame) is not type(self.frame) or inside is None:
            return frame
        return inside.wrap(self._envelope, frame)

    def pass_on(self, frame: Frame, delay: float = 0.0) -> None:
        self._passage.pass_on(self._closed(frame), delay)

    def park(self, frame: Frame, seconds: float | None = None) -> None:
        self._passage.park(self._closed(frame), seconds)

    def answer(self, frame: Frame) -> None:
        if self._passage.direction == "out":
            frame = self._closed(frame)
        self._passage.answer(frame)

    def encode(self, frame: Frame) -> Any:
        return self._passage.encode(self._closed(frame))
