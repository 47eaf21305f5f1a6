"""Frames that come twice, in another order, in one write, one message at a time, or many in one frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from conformance.run.acts.define import InjectionPoint, Param, act, choices, outwards
from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame
from fakebrokers.errors import WireError
from fakebrokers.faults.effect import Passage

PARKED_S = 0.5
JOINED = 6  #: frames, at most, whose messages come in one
GATHER_S = 0.05


@act("twice", outwards)
def twice(passage: Passage, param: Any, traits: Traits) -> None:
    """The frame comes twice."""
    passage.pass_through()
    passage.pass_through()


@act("swap", outwards, reach=2)
def swap(passage: Passage, param: Any, traits: Traits) -> None:
    """The frame after this one comes before it."""
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
def glue(passage: Passage, param: int, traits: Traits) -> None:
    """The frame and those after it come in one write."""
    passage.gather(param, GATHER_S)
    passage.pass_through()


def batches(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Where a frame carries several messages."""
    items = type(place.frame).spec.items
    if place.direction == "out" and items is not None and items.count(place.frame) > 1:
        yield from (("", "ordered"), ("", "reversed"))


@act("split", batches)
def split(passage: Passage, param: str, traits: Traits) -> None:
    """The messages of a frame come in one frame each, in this order or in the other one."""
    frame = passage.frame
    items = None if frame is None else type(frame).spec.items
    if frame is None or items is None:
        passage.pass_through()
        return
    indices = list(range(items.count(frame)))
    for index in indices if param == "ordered" else reversed(indices):
        passage.pass_on(items.select(frame, [index]))


def joined(first: Frame, second: Frame) -> Frame:
    """A frame with the messages of both. Raises `ValueError` where there is none."""
    items = type(first).spec.items
    if items is None or type(first) is not type(second):
        raise ValueError("they carry no messages, or are of two kinds")
    sizes = items.count(first), items.count(second)
    both = {}
    for name in type(first).__struct_fields__:
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, tuple) and (len(one), len(other)) == sizes:
            both[name] = one + other
        elif isinstance(one, bytes) and one and len(one) * sizes[1] == len(other) * sizes[0]:
            both[name] = one + other  # packed, each in as many bytes
        elif one != other:
            raise ValueError(f"they have another {name}")
    if not both:
        raise ValueError("their messages stand in no array")
    return msgspec.structs.replace(first, **both)


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
def join(passage: Passage, param: Any, traits: Traits) -> None:
    """The messages of the frame and of those of its kind after it come in one frame."""
    frame = passage.frame
    assert frame is not None
    back = passage.unpark()
    try:
        frame = joined(back[0], frame) if back else frame
    except ValueError:  # a frame of another kind, which comes in its own place
        passage.pass_through()
        frame = back[0]
    passage.park(frame, PARKED_S)
