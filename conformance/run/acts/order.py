"""Frames that come twice, in another order, in one write, one message at a time, or many in one frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.run.acts.define import InjectionPoint, Param, act, choices, outwards
from conformance.run.traits import Traits
from fakebrokers.errors import WireError
from fakebrokers.faults.effect import Effect
from fakebrokers.faults.effects import Coalesce, Duplicate, Join, Reorder, Split
from fakebrokers.faults.effects.batch import joined

PARKED_S = 0.5
JOINED = 6  #: frames, at most, whose messages come in one
GATHER_S = 0.05


@act("twice", outwards)
def twice(param: Any, traits: Traits) -> Sequence[Effect]:
    """The frame comes twice."""
    return [Duplicate()]


@act("swap", outwards, reach=2)
def swap(param: Any, traits: Traits) -> Sequence[Effect]:
    """The frame after this one comes before it."""
    return [Reorder(within_s=PARKED_S)]


@act("glue", choices(2, 5))
def glue(param: int, traits: Traits) -> Sequence[Effect]:
    """The frame and those after it come in one write."""
    return [Coalesce(frames=param, within_s=GATHER_S)]


def batches(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Where a frame carries several messages."""
    items = type(place.frame).spec.items
    if place.direction == "out" and items is not None and items.count(place.frame) > 1:
        yield from (("", "ordered"), ("", "reversed"))


@act("split", batches)
def split(param: str, traits: Traits) -> Sequence[Effect]:
    """The messages of a frame come in one frame each, in this order or in the other one."""
    return [Split(reverse=param == "reversed")]


def joinable(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Where a frame can carry the messages of several."""
    if place.direction != "out":
        return
    try:
        if traits.reading.codec("server").encode(joined(place.frame, place.frame)):
            yield "", None
    except (ValueError, WireError):
        return


@act("join", joinable, reach=JOINED)
def join(param: Any, traits: Traits) -> Sequence[Effect]:
    """The messages of the frame and of those of its kind after it come in one frame."""
    return [Join(within_s=PARKED_S)]
