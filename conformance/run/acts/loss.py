"""Connections that end, and frames that get lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.run.acts.define import InjectionPoint, Param, act, act_at_frame, always, is_stream, said
from conformance.run.traits import Traits
from fakebrokers.core.frames import Role
from fakebrokers.core.session import HangUp
from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.faults.effects import Drop, Fin, Rst, Truncate

#: Offsets at which the headers of most wires have a border, or none.
BORDERS = (1, 3, 4, 6, 8, 9, 10, 12, 17)
INSIDE = 8  #: as many places inside frames that carry messages
FEW_BATCHES = 4  #: frames of a kind that are cut between their messages
BATCHES = (Role.PUBLISH, Role.CONFIRM, Role.REJECT, Role.DELIVER)


@act("rst", always)
def rst(param: Any, traits: Traits) -> Sequence[Effect]:
    """The connection is reset right after the frame."""
    return [Rst()]


@act("fin", always)
def fin(param: Any, traits: Traits) -> Sequence[Effect]:
    """The server ends the connection right after the frame."""
    return [Fin()]


@act("rst-before", always)
def rst_before(param: Any, traits: Traits) -> Sequence[Effect]:
    """The connection is reset in place of the frame."""
    return [Rst(pass_frame=False)]


def closes(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """At every frame, if servers say so at all."""
    if traits.faults.close_frame() is not None:
        yield from (("fin", "fin"), ("stays", "stays"))


@act("goodbye", closes)
def close_frame(param: Any, traits: Traits) -> Sequence[Effect]:
    """The server says that it ends the connection, after the frame; it may end it at once."""
    return [*said(traits.faults.close_frame()), *([Fin()] if param == "fin" else [])]


def lasts(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Where a frame can say so itself."""
    if place.direction == "out" and traits.faults.last_of(place.frame) is not None:
        yield from (("fin", "fin"), ("stays", "stays"))


@act_at_frame("last", lasts)
def last(passage: Passage, param: Any, traits: Traits) -> None:
    """The frame says that the server ends the connection after it; it may do so at once."""
    word = traits.faults.last_of(passage.frame) if passage.frame is not None else None
    if word is None:
        passage.pass_through()
        return
    passage.pass_on(word)
    if param == "fin":
        passage.hang_up(HangUp.FIN)


def loseable(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Whatever the server says; of the client's frames those that want an answer. TCP loses nothing."""
    if place.direction == "out" or type(place.frame) in traits.questions.answers:
        yield "", None


@act("lost", loseable)
def lost(param: Any, traits: Traits) -> Sequence[Effect]:
    """The frame gets lost, and nothing else."""
    return [Drop()]


def cuts(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """The end comes inside the frame: at its borders, and between and inside the messages it carries."""
    if place.direction != "out" or not isinstance(place.data, bytes):
        return
    points = {*BORDERS, place.size // 2, place.size - 1} if place.ordinal <= 2 else {6}
    if place.role in BATCHES:
        points |= {place.size * part // INSIDE for part in range(1, INSIDE)}
    points |= _around_messages(place, traits)
    between = set(traits.faults.borders(place.frame, place.data)) if place.ordinal <= FEW_BATCHES else set()
    for point in sorted(points | between):
        if 0 < point < place.size:
            where = "head" if point <= max(BORDERS) else "inside"
            yield "between messages" if point in between else where, point


def _around_messages(place: InjectionPoint, traits: Traits) -> set[int]:
    """Where what a frame carries begins, and a little before and after that."""
    start = traits.faults.payload_at(place.frame) if place.ordinal <= 2 else None
    return set() if start is None else {start - 4, start - 2, start, start + 1}


@act("cut", cuts)
def cut(param: int, traits: Traits) -> Sequence[Effect]:
    """The connection is reset inside the frame; in front of it where frames are whole or not there."""
    return [Truncate(keep=param), Rst()] if is_stream(traits) else [Rst(pass_frame=False)]


def few_cuts(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """In the header, in the middle, before the end, and where what it carries begins."""
    if place.direction == "out" and isinstance(place.data, bytes) and place.ordinal <= 2:
        for point in {5, place.size // 2, place.size - 1, *_around_messages(place, traits)}:
            if 0 < point < place.size:
                yield "", point


@act("cut-fin", few_cuts)
def cut_fin(param: int, traits: Traits) -> Sequence[Effect]:
    """The server ends the connection inside the frame."""
    return [Truncate(keep=param), Fin()]
