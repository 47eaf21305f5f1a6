"""Messages of several parts with other parts, where the transport keeps their borders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.run.acts.define import InjectionPoint, Param, act_at_frame
from conformance.run.traits import Traits
from fakebrokers.core.session import HangUp
from fakebrokers.faults.effect import Passage

#: What may replace a part, by name.
INSTEAD = {
    "empty": b"",
    "zero": b"0",
    "one": b"1",
    "letters": b"OK",
    "foreign": b"\xff\xfe",
    "padded": b"007",
    "digits": b"9" * 5000,
}
FEW_PARTS = 6


def with_parts(
    parts: Sequence[bytes], how: str, at: int, more: Mapping[str, bytes] | None = None
) -> tuple[bytes, ...]:
    """The parts with a change at one of them. Raises LookupError where there is none of that number.

    Args:
        more: What may replace a part besides `INSTEAD`.
    """
    part = parts[at]
    before, next_position = parts[:at], parts[at + 1 :]
    if how == "without":
        return (*before, *next_position)
    if how == "twice":
        return (*before, part, part, *next_position)
    if how == "blank before":
        return (*before, b"", part, *next_position)
    if how == "more before":
        return (*before, b"more", part, *next_position)
    if how == "none behind":
        return (*before, part)
    if how == "newline":
        return (*before, part + b"\n", *next_position)
    if how == "longer":
        return (*before, part + b"\x00", *next_position)
    return (*before, {**INSTEAD, **(more or {})}[how], *next_position)


def changes(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Every change at the first parts that changes anything."""
    if place.direction != "out" or place.ordinal > 2 or not isinstance(place.data, tuple):
        return
    for at in range(min(len(place.data), FEW_PARTS)):
        for how in (
            "without",
            "twice",
            "blank before",
            "more before",
            "longer",
            "newline",
            "none behind",
            *INSTEAD,
            *traits.faults.other_parts,
        ):
            if with_parts(place.data, how, at, traits.faults.other_parts) != place.data:
                yield f"{at} {how}", [how, at]
    yield "end", ["more", len(place.data)]


@act_at_frame("part", changes, lies=True)
def change_part(passage: Passage, param: Any, traits: Traits) -> None:
    """A part of the message is missing, is another one, or has one more beside it."""
    how, at = param
    data = passage.data
    if isinstance(data, tuple) and how == "more":
        passage.pass_raw((*data, b"more"))
    elif isinstance(data, tuple) and at < len(data):
        passage.pass_raw(with_parts(data, how, at, traits.faults.other_parts))
    else:
        passage.pass_through()


def tears(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """At the borders of the parts of a message, and a little after them."""
    if place.direction != "out" or place.ordinal > 2 or not isinstance(place.data, tuple):
        return
    for number, point in enumerate(traits.faults.borders(place.frame, place.data)[:FEW_PARTS], 1):
        yield f"behind {number}", [point]
        yield f"in {number + 1}", [point + 1]


@act_at_frame("torn", tears)
def torn(passage: Passage, param: list[int], traits: Traits) -> None:
    """The connection is reset when some parts of the message have come, and others not."""
    pieces = traits.faults.pieces(passage.data, param)
    if len(pieces) > 1:
        passage.pass_raw(pieces[0])
    passage.hang_up(HangUp.RST)
