"""The frame is lost."""

from __future__ import annotations

from fakebrokers.faults.effect import Effect, Passage


class Drop(Effect, frozen=True, tag="drop"):
    """The frame is lost; everything else goes on. TCP never does that: it is like a broker's bug,
    or for a frame that was lost together with the node that meant to send it."""

    def apply(self, passage: Passage) -> None:
        pass
