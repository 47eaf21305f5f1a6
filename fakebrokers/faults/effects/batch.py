"""Messages in other frames: one in each, or those of several frames in one."""

from __future__ import annotations

from typing import Any

import msgspec

from fakebrokers.core.frames import Frame
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism


class Split(Effect, frozen=True, tag="split"):
    """The messages of a frame come in a frame each; a frame that carries none is as it was.

    Attributes:
        reverse: The last one first.
    """

    realism = Realism.LEGAL
    reverse: bool = False

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        items = None if frame is None else frame.spec.items
        if frame is None or items is None:
            passage.pass_through()
            return
        indices = range(items.count(frame))
        for index in reversed(indices) if self.reverse else indices:
            passage.pass_on(items.select(frame, [index]))


class Join(Effect, frozen=True, tag="join"):
    """The messages of several frames of one kind come in one; a frame of another kind comes before them.

    Attributes:
        within_s: For how many seconds it waits for more.
    """

    realism = Realism.LEGAL
    within_s: float = 0.5

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        assert frame is not None
        if frame.spec.items is None:
            passage.pass_through()
            return
        waiting = passage.unpark()
        try:
            frame = joined(waiting[0], frame) if waiting else frame
        except ValueError:  # a frame of another kind, which comes in its own place
            passage.pass_through()
            frame = waiting[0]
        passage.park(frame, self.within_s)

    def check(self, path: str) -> None:
        if self.within_s <= 0:
            raise PlanError(f"{path}.within_s", f"expected seconds above 0, got {self.within_s}")


def joined(first: Frame, second: Frame) -> Frame:
    """A frame with the messages of both. Raises `ValueError` where there is none."""
    items = first.spec.items
    if items is None or type(first) is not type(second):
        raise ValueError("they carry no messages, or are of two kinds")
    sizes = items.count(first), items.count(second)
    both: dict[str, Any] = {}
    for name in type(first).__struct_fields__:
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, tuple) and (len(one), len(other)) == sizes:
            both[name] = one + other
        elif isinstance(one, bytes) and one and len(one) * sizes[1] == len(other) * sizes[0]:
            both[name] = one + other  # packed, each in as many bytes
        elif one != other:
            raise ValueError(f"they have another {name}")
    if not both:
        raise ValueError("their messages are in no array")
    return msgspec.structs.replace(first, **both)
