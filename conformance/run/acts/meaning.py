"""Answers that mean something else than the broker did, and frames of another shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.run.acts.define import InjectionPoint, Param, act, act_at_frame
from conformance.run.acts.specimen import kind_named, specimen
from conformance.run.traits import Traits, key_of
from fakebrokers.core.frames import kind_of
from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.faults.effects import Corrupt, Extend, Overwrite, Truncate

WHERE = ("instead", "before", "after")
TRAILING = b"\x00\x00\x00\x07"
HEAD = 8  #: bytes of a frame that is nothing but its head
OFFSETS = (0, 2, 4, 6, 8, 9, 10, 12, 14)
MOST = {1: 0xFF, 2: 0xFFFF, 4: 0xFFFFFFFF}


def answers(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Where an answer has an opposite; with every class of codes where it takes the place of the answer."""
    if place.direction != "out" or traits.questions.opposite(place.frame, None) is None:
        return
    items = type(place.frame).spec.items
    many = " of several" if items is not None and items.count(place.frame) > 1 else ""
    yield from ((where + many, [where, None]) for where in WHERE)
    if place.ordinal <= 2 and traits.questions.accepts(place.frame):
        yield from ((f"code {code}", ["instead", code]) for code in traits.questions.refusals)


@act_at_frame("contradict", answers, lies=True)
def contradict(passage: Passage, param: Any, traits: Traits) -> None:
    """The opposite answer comes: instead of the answer, before it, or after it."""
    where, code = param
    other = traits.questions.opposite(passage.frame, code) if passage.frame is not None else None
    if other is None:
        passage.pass_through()
        return
    if where == "before":
        passage.answer(other)
    if where == "instead":
        passage.pass_on(other)
        return
    passage.pass_through()
    if where == "after":
        passage.answer(other)


def other_types(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Answers to other questions, with the key of this one."""
    if place.direction != "out" or type(place.frame) not in traits.questions.answers.values():
        return
    others = [
        kind for kind in dict.fromkeys(traits.questions.answers.values()) if kind is not type(place.frame)
    ]
    if place.ordinal > 1:
        others = others[::5]
    for kind in others:
        if specimen(kind, traits, key_of(place.frame)) is not None:
            yield "instead", [kind_of(kind), "instead"]
            yield "before", [kind_of(kind), "before"]


@act_at_frame("type", other_types, lies=True)
def other_type(passage: Passage, param: Any, traits: Traits) -> None:
    """An answer to another question comes with the key of this one, instead of the answer or before it."""
    name, where = param
    assert passage.frame is not None
    made = specimen(kind_named(name, traits), traits, key_of(passage.frame))
    if made is None:
        passage.pass_through()
        return
    if where == "before":
        passage.answer(made)
        passage.pass_through()
    else:
        passage.pass_raw(passage.encode(made))


def versions(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """What the wire has for versions of frames."""
    if place.direction == "out" and place.ordinal <= 2 and isinstance(place.data, bytes):
        for name in traits.faults.other_versions(place.data):
            yield from ((name, [name, where]) for where in ("instead", "before"))


@act_at_frame("version", versions, lies=True)
def version(passage: Passage, param: Any, traits: Traits) -> None:
    """The frame has another version, with or without another shape."""
    name, where = param
    data = traits.faults.other_versions(bytes(passage.data)).get(name)
    if data is None:
        passage.pass_through()
        return
    if where == "before":
        passage.say_raw(data)
        passage.pass_through()
    else:
        passage.pass_raw(data)


def shapes(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Where bytes are written by the fake itself."""
    if place.direction == "out" and place.ordinal <= 2 and isinstance(place.data, bytes):
        yield from (("longer", "longer"), ("shorter", "shorter"), ("empty", "empty"))


@act("shape", shapes, lies=True)
def shape(param: str, traits: Traits) -> Sequence[Effect]:
    """The frame has four bytes more than it should, four fewer, or nothing but its head; its size fits."""
    if param == "longer":
        return [Extend(hex=TRAILING.hex())]
    return [Truncate(keep=-4 if param == "shorter" else HEAD, mend=True)]


BIT_BYTES = 2


def bits(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Every bit at the beginning of a frame: flags, kinds, and sizes for most wires."""
    if place.direction == "out" and place.ordinal <= 1 and isinstance(place.data, bytes):
        for bit in range(8 * min(BIT_BYTES, place.size)):
            yield str(bit), bit


@act("bit", bits, lies=True)
def flip_bit(param: int, traits: Traits) -> Sequence[Effect]:
    """A bit at the beginning of the frame is the other one; nothing else is recomputed."""
    return [Corrupt(at=param // 8, xor=0x80 >> param % 8)]


def numbers(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Numbers in the head of a frame, whatever they mean: sizes, kinds, ids, counts."""
    if place.direction != "out" or place.ordinal > 1 or not isinstance(place.data, bytes):
        return
    for offset in OFFSETS:
        for width in (2, 4):
            if offset + width <= place.size:
                for word, value in (("zero", 0), ("step", {"add": 1}), ("most", MOST[width])):
                    yield f"{offset} {word}", [offset, width, value]


@act("number", numbers, lies=True, by_kind=False)
def number(param: Any, traits: Traits) -> Sequence[Effect]:
    """A number in the head of the frame is wrong; nothing else is recomputed."""
    offset, width, value = param
    if isinstance(value, dict):
        return [Overwrite(at=offset, width=width, add=value["add"])]
    return [Overwrite(at=offset, width=width, value=value)]
