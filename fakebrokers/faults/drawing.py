"""Faults at frames, drawn as rows of a fault plan.

Where a fault acts is drawn from the frames that the protocol has; how often is a position, a share of all, or
the first few. Numbers are few and plain, so that a schedule reads well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from fakebrokers.core.frames import Role
from fakebrokers.description import Description
from fakebrokers.errors import PlanError
from fakebrokers.faults import Realism
from fakebrokers.faults.plan import fault_from

Row = dict[str, Any]
Draw = Callable[[Random], Row]


class Template(NamedTuple):
    """One kind of fault.

    Attributes:
        effect: Draws its settings, with ``type``.
        direction: The only one in which it makes sense; "" for both.
        rare: It ends connections or holds them up, so one place is enough.
        lies: What the client is told then may not be what the broker did.
    """

    name: str
    realism: Realism
    effect: Draw
    direction: str = ""
    rare: bool = False
    lies: bool = False


def _seconds(random: Random) -> float:
    return random.choice((0.01, 0.1, 0.5, 2.0))


def _share(random: Random) -> float:
    return random.choice((0.1, 0.5, 0.9))


def _even(random: Random) -> bool:
    return random.random() < 0.5


def _long(random: Random) -> float:
    return random.choice((1.0, 3.0, 10.0))


LEGAL, ENVIRONMENT, ILLEGAL = Realism.LEGAL, Realism.ENVIRONMENT, Realism.ILLEGAL

TEMPLATES: tuple[Template, ...] = (
    Template("slice", LEGAL, lambda r: {"type": "slice", "up_to": r.choice((1, 3, 20))}, "out"),
    Template("coalesce", LEGAL, lambda r: {"type": "coalesce", "within_s": r.choice((0.02, 0.2))}, "out"),
    Template("latency", LEGAL, lambda r: {"type": "latency", "seconds": _seconds(r)}),
    Template("rst", ENVIRONMENT, lambda r: {"type": "rst", "pass_frame": _even(r)}, rare=True),
    Template("fin", ENVIRONMENT, lambda r: {"type": "fin", "pass_frame": _even(r)}, rare=True),
    Template("half-open", ENVIRONMENT, lambda r: {"type": "half-open", "pass_frame": True}, rare=True),
    Template("silent", ENVIRONMENT, lambda r: {"type": "silent", "for_s": _long(r)}, rare=True),
    Template("stall", ENVIRONMENT, lambda r: {"type": "stall", "for_s": _long(r)}, rare=True),
    Template("hold", ENVIRONMENT, lambda r: {"type": "hold", "behind": True, "for_s": _long(r)}, rare=True),
    Template("throttle", ENVIRONMENT, lambda r: {"type": "throttle", "bytes_per_s": r.choice((500, 20_000))}),
    Template("crash", ENVIRONMENT, lambda r: {"type": "crash", "restart_s": _long(r)}, rare=True),
    Template("drop", ENVIRONMENT, lambda _: {"type": "drop"}),
    Template("delay", ENVIRONMENT, lambda r: {"type": "delay", "seconds": _seconds(r)}),
    Template("truncate", ENVIRONMENT, lambda r: {"type": "truncate", "share": _share(r)}, "out", rare=True),
    Template("duplicate", ILLEGAL, lambda _: {"type": "duplicate"}, "out", lies=True),
    Template("reorder", ILLEGAL, lambda _: {"type": "reorder", "window": 2}, "out", lies=True),
    Template("corrupt", ILLEGAL, lambda r: {"type": "corrupt", "mend": _even(r)}, "out", True, True),
)  # fmt: skip

BY_NAME: Mapping[str, Template] = {one.name: one for one in TEMPLATES}


#: Roles of frames that clients and brokers send; a protocol's `Actions.also` has what is special there.
SENT: Mapping[str, frozenset[Role]] = {
    "in": frozenset(
        {Role.HANDSHAKE, Role.OPEN, Role.SHUT, Role.PUBLISH, Role.ACK, Role.FLOW, Role.REQUEST}
        | {Role.HEARTBEAT, Role.CLOSE}
    ),
    "out": frozenset(
        {Role.HANDSHAKE, Role.CONFIRM, Role.REJECT, Role.DELIVER, Role.RESPONSE, Role.EVENT}
        | {Role.HEARTBEAT, Role.CLOSE}
    ),
}
#: Roles that only some kinds of workloads have; others make no use of faults there.
ONLY: Mapping[str, frozenset[Role]] = {
    "publish": frozenset({Role.PUBLISH, Role.CONFIRM, Role.REJECT}),
    "consume": frozenset({Role.DELIVER, Role.ACK, Role.FLOW}),
    "request": frozenset({Role.REQUEST}),
}


def places(protocol: Description, also: Iterable[tuple[str, Role]] = ()) -> list[tuple[str, Role]]:
    """Direction and role of the frames of a protocol's first wire, in a stable order."""
    there = {
        (direction, role)
        for kind in protocol.wires[0].frames
        for direction in SENT
        if kind.way in ("", direction)
        for role in kind.spec.roles_in(direction)
    }
    return sorted(place for place in there if place[1] in SENT[place[0]] or place in also)


def places_of(
    protocol: Description, workload: str, also: Iterable[tuple[str, Role]]
) -> list[tuple[str, Role]]:
    """Those that a kind of workload has."""
    if workload not in ONLY:
        return places(protocol, also)
    foreign = frozenset[Role]().union(*(roles for kind, roles in ONLY.items() if kind != workload))
    return [place for place in places(protocol, also) if place[1] not in foreign]


def draw_match(there: Sequence[tuple[str, Role]], random: Random, *, rare: bool) -> Row:
    """Which frames: of one direction and role, the n-th, a share of all, or the first few."""
    direction, role = random.choice(there)
    match: Row = {"direction": direction, "role": str(role)}
    how = random.choice(("nth", "nth", "share", "first"))
    if how == "nth" or rare:
        match["nth"] = random.choice((1, 1, 2, 3, 5, 10, 20))
    elif how == "share":
        match["probability"] = random.choice((0.05, 0.2, 0.5, 1.0))
    else:
        match["first"] = random.choice((1, 2, 5))
    return match


def draw_fault(
    template: Template, protocol: Description, there: Sequence[tuple[str, Role]], random: Random
) -> Row | None:
    """A row of a fault plan; None where this protocol's wires cannot have what was drawn.

    Args:
        there: Where it may act, see `places_of`.
    """
    fitting = [place for place in there if template.direction in ("", place[0])]
    match = draw_match(fitting, random, rare=template.rare)
    effects: list[Row] = [template.effect(random)]
    if template.name == "truncate":
        effects.append({"type": "rst"})  # half a frame and nothing after it, ever, is no network
    row: Row = {"match": match, "effect": effects[0] if len(effects) == 1 else effects}
    return row if _fits(row, protocol) else None


def _fits(row: Row, protocol: Description) -> bool:
    fault = fault_from(row, "fault", protocol)
    try:
        for wire in protocol.wires:
            for effect, path in fault.placed_effects("fault"):
                effect.check_wire(wire, fault.match, path)
    except PlanError:
        return False
    return True
