"""How effects become functions that build faults; `build` has those of all protocols.

    move_leader = builder(MoveLeader)
    move_leader("orders", node=2, role="publish", nth=10)

The types of such functions stand in a stub beside their module, which `stubs` writes from the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import Fault
from fakebrokers.faults.read import convert, one_of, struct_from
from fakebrokers.faults.registry import effect_name
from fakebrokers.faults.source import function_name


def fault(*acts: Effect | Fault, name: str = "", realism: Realism | str | None = None, **match: Any) -> Fault:
    """Several effects in one step: ``fault(truncate(), rst(), role="confirm", nth=2)``."""
    where = name or "fault"
    built = Fault(
        name=name,
        match=struct_from(match, Match, f"{where}.match"),
        effects=tuple(chain.from_iterable(map(_effects, acts))),
        realism=convert(realism, Realism | None, f"{where}.realism"),
    )
    built.check(where)
    return built


def _effects(act: Effect | Fault) -> Sequence[Effect]:
    """The effects of a part of a fault."""
    if isinstance(act, Effect):
        return (act,)
    if act != Fault(match=Match(), effects=act.effects):
        raise PlanError("fault", f"expected effects alone, such as drop(); got {act}")
    return act.effects


def sweep(what: Fault, limit: int = 10_000) -> Iterator[Fault]:
    """The fault at its first position, its second, its third ...; leave the loop when one did not fire.

    for broken in sweep(drop(role="confirm")):
        with broker_class() as broker:
            name = broker.faults.add(broken)
            ...
            if not broker.faults.fired(name):
                break
    """
    match, step = what.match, what.match.every or 1
    last = limit if match.first is None else min(limit, match.first)
    for nth in range(step, last + 1, step):
        yield msgspec.structs.replace(what, match=msgspec.structs.replace(match, nth=nth))


def builder(kind: type[Effect]) -> Callable[..., Fault]:
    """A function that builds faults with this effect.

    Arguments named like a setting of the effect go to the effect, ``name`` and ``realism`` to the fault, all
    others to the `Match`; the settings may be given by position. Any other word is a `PlanError`.
    """
    tag = effect_name(kind)

    own = kind.__struct_fields__
    known = tuple(dict.fromkeys((*own, *Match.__struct_fields__, "name", "realism")))

    def make(*args: Any, **options: Any) -> Fault:
        if len(args) > len(own):
            raise PlanError(tag, f"expected at most {len(own)} settings, got {len(args)}")
        settings = dict(zip(own, args, strict=False))
        for option in options:
            if option not in known:
                raise PlanError(f"{tag}.{option}", f"expected {one_of(known, option)}")
            if option in settings:
                raise PlanError(f"{tag}.{option}", "expected one value, got one by position and one by name")
        settings.update({each: options.pop(each) for each in own if each in options})
        return fault(struct_from(settings, kind, tag), **options)

    make.__name__ = make.__qualname__ = function_name(kind)
    make.__doc__ = kind.__doc__
    return make
