"""Faults that stay: from one frame on, every frame of its kind meets the same act, on every connection.

A fault that comes once shows how a client gets over it; one that stays shows whether it makes pauses, how
long it tries, and what it reports meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from conformance.run.acts.define import ACTS, Act, InjectionPoint, Param, act
from conformance.run.traits import Traits
from fakebrokers.core.frames import kind_of
from fakebrokers.faults.effect import Effect

FROM = (1, 2)  #: from which frame of the kind on
LASTING = (("rst-before", None), ("fin", None), ("lost", None), ("late", None))


def staying(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Losses and delays, from each of the first frames of a kind on."""
    if place.ordinal not in FROM:
        return
    for name, param in LASTING:
        if _makes_sense(ACTS[name], place, traits):
            yield name + _first(place), [kind_of(place.frame), place.ordinal, name, param]


def refusing(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """A plain refusal, and from the first answer on one with each code: some clients ask again for some."""
    if place.ordinal not in FROM or not _makes_sense(ACTS["contradict"], place, traits):
        return
    kind = kind_of(place.frame)
    yield f"contradict{_first(place)}", [kind, place.ordinal, "contradict", ["instead", None]]
    if place.ordinal == 1 and traits.questions.accepts(place.frame):
        for code in traits.questions.refusals:
            yield f"contradict {code}", [kind, place.ordinal, "contradict", ["instead", code]]


def _first(place: InjectionPoint) -> str:
    return "" if place.ordinal == 1 else " later"


def _makes_sense(known: Act, place: InjectionPoint, traits: Traits) -> bool:
    if place.direction == "in" and known.name == "late":
        return False
    return next(iter(known.params(place, traits)), None) is not None


@act("stays", staying, lasting=True)
def stays(param: Any, traits: Traits) -> Sequence[Effect]:
    """From here on every frame of this kind is lost, late, or ends its connection."""
    _, _, name, inner = param
    return ACTS[name].effects(inner, traits)


@act("stays-refused", refusing, lasting=True, lies=True)
def stays_refused(param: Any, traits: Traits) -> Sequence[Effect]:
    """From here on every answer of this kind has the contrary meaning."""
    return stays(param, traits)
