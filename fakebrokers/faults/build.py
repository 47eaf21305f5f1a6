"""Faults in one line of Python: ``drop(role="confirm", nth=3)``.

Each function is named like its effect. Arguments named like a setting of the effect go to the effect,
``name`` and ``realism`` to the fault, all others to the `Match`; the effect's first setting may be
given by position: ``latency(0.3, jitter=0.1, role="confirm")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fakebrokers.errors import PlanError
from fakebrokers.faults import effects
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import Fault
from fakebrokers.faults.read import one_of, struct_from


def fault(*acts: Effect, name: str = "", realism: Realism | None = None, **match: Any) -> Fault:
    """Several effects in one step: ``fault(Truncate(), Rst(), role="confirm", nth=2)``."""
    where = name or "fault"
    built = Fault(name=name, match=struct_from(match, Match, f"{where}.match"), effects=acts, realism=realism)
    built.check(where)
    return built


def sweep(what: Fault, limit: int = 10_000) -> Iterator[Fault]:
    """The fault at its first position, its second, its third ...; leave the loop when one did not fire.

    for broken in sweep(drop(role="confirm")):
        with broker_class() as broker:
            name = broker.faults.add(broken)
            ...
            if not broker.faults.fired(name):
                break
    """
    for nth in range(1, limit + 1):
        yield msgspec.structs.replace(what, match=msgspec.structs.replace(what.match, nth=nth))


def _maker(kind: type[Effect]) -> Callable[..., Fault]:
    tag = str(kind.__struct_config__.tag)

    def make(*args: Any, name: str = "", realism: Realism | None = None, **options: Any) -> Fault:
        if len(args) > len(kind.__struct_fields__):
            raise PlanError(tag, f"expected at most {len(kind.__struct_fields__)} settings, got {len(args)}")
        settings = dict(zip(kind.__struct_fields__, args, strict=False))
        settings.update({k: options.pop(k) for k in kind.__struct_fields__ if k in options})
        known = (*kind.__struct_fields__, *Match.__struct_fields__, "name", "realism")
        for option in options:
            if option not in known:
                raise PlanError(f"{tag}.{option}", f"expected {one_of(known, option)}")
        return fault(struct_from(settings, kind, tag), name=name, realism=realism, **options)

    make.__name__ = make.__qualname__ = tag.replace("-", "_")
    make.__doc__ = kind.__doc__
    return make


black_hole = _maker(effects.BlackHole)
coalesce = _maker(effects.Coalesce)
corrupt = _maker(effects.Corrupt)
crash = _maker(effects.Crash)
delay = _maker(effects.Delay)
drop = _maker(effects.Drop)
duplicate = _maker(effects.Duplicate)
extend = _maker(effects.Extend)
fin = _maker(effects.Fin)
half_open = _maker(effects.HalfOpen)
hold = _maker(effects.Hold)
inject = _maker(effects.Inject)
latency = _maker(effects.Latency)
refuse = _maker(effects.Refuse)
reorder = _maker(effects.Reorder)
reply = _maker(effects.Reply)
rewrite = _maker(effects.Rewrite)
rst = _maker(effects.Rst)
shift_clock = _maker(effects.ShiftClock)
silent = _maker(effects.Silent)
slice_ = _maker(effects.Slice)
stall = _maker(effects.Stall)
throttle = _maker(effects.Throttle)
truncate = _maker(effects.Truncate)
