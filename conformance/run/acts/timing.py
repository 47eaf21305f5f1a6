"""Frames that come late, slowly, or not for a while."""

from __future__ import annotations

from typing import Any

from conformance.run.acts.define import act, choices, outwards
from conformance.run.traits import Traits
from fakebrokers.faults.effect import Passage

PIECES = 8
#: After the time-out of ops in base scripts (2 s), before and after that of most clients.
LATE_S = 3.0


@act("late", outwards)
def late(passage: Passage, param: Any, traits: Traits) -> None:
    """The frame comes 3 s late, and what comes after it overtakes it."""
    passage.pass_through(LATE_S)


@act("latency", choices(0.3, LATE_S, 30.0))
def latency(passage: Passage, param: float, traits: Traits) -> None:
    """The frame and everything after it come late."""
    passage.push_back(param)
    passage.pass_through()


@act("twice-late", choices(1.0))
def twice_late(passage: Passage, param: float, traits: Traits) -> None:
    """The frame comes, and once more later."""
    passage.pass_through()
    passage.pass_through(param)


@act("trickle", choices(0.6, 1.9))
def trickle(passage: Passage, param: float, traits: Traits) -> None:
    """The frame comes in eight pieces with pauses in between."""
    size = passage.size
    pieces = traits.faults.pieces(passage.data, range(0, size, max(1, size // PIECES)))
    if not pieces:
        passage.pass_through()
        return
    passage.pass_pieces(pieces, [param] * len(pieces))


@act("silent", choices(None, LATE_S))
def silent(passage: Passage, param: float | None, traits: Traits) -> None:
    """Nothing comes after the frame, for 3 s or until the faults are cleared."""
    passage.pass_through()
    passage.silence((), param)
