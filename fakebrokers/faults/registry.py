"""Which effects there are: those of all protocols, and those of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakebrokers.description import Description, descriptions
from fakebrokers.errors import PlanError
from fakebrokers.faults import effects
from fakebrokers.faults.effect import Effect
from fakebrokers.reading import one_of

#: What every fake has.
COMMON: Sequence[type[Effect]] = tuple(getattr(effects, name) for name in effects.__all__)


def effect_name(effect: Effect | type[Effect]) -> str:
    """What plans call an effect."""
    return str(effect.__struct_config__.tag)


def effect_types(own: Sequence[type[Effect]] = ()) -> dict[str, type[Effect]]:
    """The effects of all protocols and these, by the names that plans use; sorted."""
    return dict(sorted((effect_name(effect), effect) for effect in (*COMMON, *own)))


def find_effect(name: object, protocol: Description | None, path: str) -> type[Effect]:
    """The effect of that name.

    Args:
        protocol: Whose own effects there are besides those of all; None: no others.

    Raises:
        PlanError: There is none; with those there are, and the closest.
    """
    types = effect_types(protocol.own_effects if protocol is not None else ())
    found = types.get(str(name))
    if found is None:
        raise PlanError(path, f"expected {one_of(list(types), name)}{_whose(name, protocol)}")
    return found


def check_effect(effect: Effect, own: Mapping[type[Effect], object], protocol: str, path: str) -> None:
    """Raise `PlanError` for an effect that only other protocols have.

    An effect that nobody has registered is its author's own business.

    Args:
        own: The effects that only this protocol has.
        protocol: Its name.
    """
    if type(effect) in own or type(effect) in COMMON:
        return
    name = effect_name(effect)
    if owners := _owners(name, protocol):
        names = list(effect_types(tuple(own)))
        raise PlanError(f"{path}.type", f"expected {one_of(names, name)}; only {owners} can do that")


def _owners(name: str, protocol: str) -> str:
    """The other protocols that have an effect of that name."""
    return " and ".join(
        other.name
        for other in descriptions()
        if other.name != protocol and name in {effect_name(effect) for effect in other.own_effects}
    )


def _whose(name: object, protocol: Description | None) -> str:
    """The end of a message about an effect that only other protocols have."""
    owners = _owners(str(name), protocol.name if protocol is not None else "")
    if not owners:
        return ""
    only = f"; only {owners} can do that"
    return only if protocol is not None else f"{only}: give its name, load_plan(source, protocol)"
