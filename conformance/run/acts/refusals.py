"""Refusals that are odd in themselves: the contrary of an answer, with another field or another part.

Runs without faults hold few refusals, and clients read them with code of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from conformance.run.acts.define import InjectionPoint, Param, act_at_frame
from conformance.run.acts.fields import fields, injected
from conformance.run.acts.parts import changes, with_parts
from conformance.run.traits import Traits
from fakebrokers.faults.effect import Passage


def odd(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """At the first answers of each kind that say yes: all changes of the answer that says no."""
    if place.direction != "out" or place.ordinal > 1 or not traits.questions.accepts(place.frame):
        return
    other = traits.questions.opposite(place.frame, None)
    if other is None:
        return
    try:
        data = traits.reading.codec("client").encode(other)
    except Exception:  # no such answer on this wire
        return
    there = place._replace(frame=other, data=data, size=len(data))
    for word, param in fields(there, traits):
        yield f"field {word}", ["field", param]
    for word, param in changes(there, traits):
        yield f"part {word}", ["part", param]


@act_at_frame("refusal", odd, lies=True)
def odd_refusal(passage: Passage, param: Any, traits: Traits) -> None:
    """A refusal comes instead of the answer, and something in it is odd."""
    what, change = param
    other = traits.questions.opposite(passage.frame, None) if passage.frame is not None else None
    if other is None:
        passage.pass_through()
        return
    try:
        if what == "field":
            data: Any = passage.encode(injected(other, change))
        else:
            how, at = change
            parts = passage.encode(other)
            data = (
                (*parts, b"more") if how == "more" else with_parts(parts, how, at, traits.faults.other_parts)
            )
    except Exception:  # another frame than in the run without faults, which has no such field or part
        passage.pass_through()
        return
    passage.pass_raw(data)
