"""Frames that come late, slowly, or not for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.run.acts.define import act, applied, at_frame, choices, is_stream, outwards
from conformance.run.traits import Traits
from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.faults.effects import Delay, Duplicate, Latency, Silent, Slice

PIECES = 8
#: After the time-out of ops in base scripts (2 s), before and after that of most clients.
LATE_S = 3.0


@act("late", outwards)
def late(param: Any, traits: Traits) -> Sequence[Effect]:
    """The frame comes 3 s late, and what comes after it overtakes it."""
    return [Delay(seconds=LATE_S)]


@act("latency", choices(0.3, LATE_S, 30.0))
def latency(param: float, traits: Traits) -> Sequence[Effect]:
    """The frame and everything after it come late."""
    return [Latency(seconds=param)]


@act("twice-late", choices(1.0))
def twice_late(param: float, traits: Traits) -> Sequence[Effect]:
    """The frame comes, and once more later."""
    return [Duplicate(after_s=param)]


@act("trickle", choices(0.6, 1.9))
def trickle(param: float, traits: Traits) -> Sequence[Effect]:
    """The frame comes in eight pieces with pauses in between."""
    if is_stream(traits):
        return [Slice(parts=PIECES, gap_s=param)]
    return [at_frame("trickle", param, traits)]


@applied("trickle")
def pieces_of_a_message(passage: Passage, param: float, traits: Traits) -> None:
    """The same where a library owns the bytes, and its transport carries the parts of a message."""
    size = passage.size
    pieces = traits.faults.pieces(passage.data, range(0, size, max(1, size // PIECES)))
    if not pieces:
        passage.pass_through()
        return
    passage.pass_pieces(pieces, [param] * len(pieces))


@act("silent", choices(None, LATE_S))
def silent(param: float | None, traits: Traits) -> Sequence[Effect]:
    """Nothing comes after the frame, for 3 s or until the faults are cleared."""
    return [Silent(for_s=param, pass_frame=True)]
