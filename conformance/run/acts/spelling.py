"""The same frame, written otherwise: what it says stays what it was, so every rule holds on."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.run.acts.define import InjectionPoint, Param, act_at_frame
from conformance.run.traits import Traits
from fakebrokers.faults.effect import Passage


def spellings(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Every way that the protocol has to write a frame, at the first two of each kind."""
    if place.direction == "out" and place.ordinal <= 2:
        for name in traits.faults.spellings(place.frame, place.data):
            yield name, name


@act_at_frame("spelled", spellings)
def spelled(passage: Passage, param: str, traits: Traits) -> None:
    """The frame is written in another way that means the same."""
    data = (
        traits.faults.spellings(passage.frame, passage.data).get(str(param))
        if passage.frame is not None
        else None
    )
    if data is None:
        passage.pass_through()
    else:
        passage.pass_raw(data)
