"""Frames that come twice, in another order, in one write, or one message at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.sweep.acts.define import Param, Place, act, choices, outwards
from conformance.sweep.model import Model
from fakebrokers.faults.effect import Passage

PARKED_S = 0.5
GATHER_S = 0.05


@act("twice", outwards)
def twice(passage: Passage, param: Any, model: Model) -> None:
    """The frame comes twice."""
    passage.pass_through()
    passage.pass_through()


@act("swap", outwards, pair=True)
def swap(passage: Passage, param: Any, model: Model) -> None:
    """The frame behind this one comes before it."""
    frame = passage.frame
    assert frame is not None
    if not passage.memory.get("parked"):
        passage.memory["parked"] = True
        passage.park(frame, PARKED_S)
        return
    back = passage.unpark()
    passage.pass_through()
    for each in back:
        passage.pass_on(each)


@act("glue", choices(2, 5))
def glue(passage: Passage, param: int, model: Model) -> None:
    """The frame and those behind it come in one write."""
    passage.gather(param, GATHER_S)
    passage.pass_through()


def batches(place: Place, model: Model) -> Iterable[Param]:
    """Where a frame carries several messages."""
    items = type(place.frame).spec.items
    if place.direction == "out" and items is not None and items.count(place.frame) > 1:
        yield from (("", "ordered"), ("", "reversed"))


@act("split", batches)
def split(passage: Passage, param: str, model: Model) -> None:
    """The messages of a frame come in one frame each, in this order or in the other one."""
    frame = passage.frame
    items = None if frame is None else type(frame).spec.items
    if frame is None or items is None:
        passage.pass_through()
        return
    indices = list(range(items.count(frame)))
    for index in indices if param == "ordered" else reversed(indices):
        passage.pass_on(items.select(frame, [index]))
