"""How effects become functions that build faults; `build` has those of all protocols.

    @builder(MoveLeader)
    def move_leader(stream: str, node: int | None = None, **fault: Unpack[FaultArgs]) -> Fault: ...

    move_leader("orders", node=2, role="publish", nth=10)

The head of such a function is for type checkers and editors: it says again what the effect's class and
`Match` say. What is called is made from the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain
from typing import Any, Literal, ParamSpec, TypedDict, Unpack

import msgspec

from fakebrokers.core.frames import Role
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.match import Direction, Match, Moment, Scope
from fakebrokers.faults.plan import Fault
from fakebrokers.faults.registry import effect_name
from fakebrokers.reading import convert, one_of, struct_from

P = ParamSpec("P")

RealismWord = Literal["legal", "environment", "illegal"]
MomentWord = Literal["accept", "ready", "partial", "begin", "idle"]
RoleWord = Literal[
    "handshake", "open", "shut", "publish", "confirm", "reject", "deliver", "ack", "flow", "heartbeat",
    "close", "request", "response", "event", "data", "malformed",
]  # fmt: skip


class _EveryFault(TypedDict, total=False):
    """What no effect has a setting of the same name for."""

    realism: Realism | RealismWord | None
    direction: Direction | None
    role: Role | RoleWord | None
    where: Mapping[str, Any]
    on: Moment | MomentWord | None
    connection: str | None
    peer: str | None
    nth: int | None
    skip: int
    first: int | None
    every: int | None
    from_s: float
    until_s: float | None
    byte: int | None
    probability: float | None
    per: Literal["frame", "connection"]
    unit: Literal["frame", "item"]
    scope: Scope | None


class FaultArgs(_EveryFault, total=False):
    """What stands with a fault, and what has to fit: see `Match`."""

    name: str
    kind: str | None
    after_s: float | None


class NamedArgs(_EveryFault, total=False):
    """The same of an effect with a setting ``name``."""

    kind: str | None
    after_s: float | None


class InjectArgs(_EveryFault, total=False):
    """The same of an effect with a setting ``kind``."""

    name: str
    after_s: float | None


class EndArgs(_EveryFault, total=False):
    """The same of an effect with a setting ``after_s``."""

    name: str
    kind: str | None


def fault(*acts: Effect | Fault, **match: Unpack[FaultArgs]) -> Fault:
    """Several effects in one step: ``fault(truncate(), rst(), role="confirm", nth=2)``."""
    name, realism = match.pop("name", ""), match.pop("realism", None)
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


def builder(kind: type[Effect]) -> Callable[[Callable[P, Fault]], Callable[P, Fault]]:
    """Makes a function that builds faults with this effect of one that only declares what it takes.

    Arguments named like a setting of the effect go to the effect, ``name`` and ``realism`` to the fault, all
    others to the `Match`; the settings may be given by position. Any other word is a `PlanError`.
    """
    tag = effect_name(kind)

    own = kind.__struct_fields__
    known = tuple(dict.fromkeys((*own, *Match.__struct_fields__, "name", "realism")))

    def decorate(declared: Callable[P, Fault]) -> Callable[P, Fault]:
        @wraps(declared)
        def make(*args: Any, **options: Any) -> Fault:
            if len(args) > len(own):
                raise PlanError(tag, f"expected at most {len(own)} settings, got {len(args)}")
            settings = dict(zip(own, args, strict=False))
            for option in options:
                if option not in known:
                    raise PlanError(f"{tag}.{option}", f"expected {one_of(known, option)}")
                if option in settings:
                    raise PlanError(
                        f"{tag}.{option}", "expected one value, got one by position and one by name"
                    )
            settings.update({each: options.pop(each) for each in own if each in options})
            return fault(struct_from(settings, kind, tag), **options)

        make.__doc__ = kind.__doc__
        return make

    return decorate
