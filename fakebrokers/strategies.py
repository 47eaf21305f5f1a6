"""Hypothesis strategies for tests of your own: fault plans that a fake can carry out.

    @given(plan=fault_plans("rabbitmq-stream"))
    def test_no_order_is_lost(plan):
        with RabbitMQStream(faults=plan) as broker:
            ...

Needs Hypothesis: the extra ``strategies``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import msgspec

from fakebrokers.core.frames import Role
from fakebrokers.core.wire import Wire
from fakebrokers.errors import PlanError, UsageError
from fakebrokers.extras import needs
from fakebrokers.faults.effect import Effect, Realism
from fakebrokers.faults.effects import (
    Coalesce,
    Corrupt,
    Crash,
    Delay,
    Drop,
    Duplicate,
    Extend,
    Fin,
    Latency,
    Refuse,
    Rst,
    Silent,
    Slice,
    Stall,
    Throttle,
    Truncate,
)
from fakebrokers.faults.injector import Injector
from fakebrokers.faults.match import Direction, Match
from fakebrokers.faults.plan import Fault, Plan
from fakebrokers.faults.registry import effect_name
from fakebrokers.protocol import Protocol, find_protocol
from fakebrokers.reading import one_of

with needs("strategies", "fakebrokers.strategies"):
    from hypothesis import strategies as st

__all__ = ["fault_plans", "faults"]

#: Where frames of a role go; of others both ways.
WAYS: dict[Role, Sequence[Direction]] = {
    Role.PUBLISH: ("in",),
    Role.CONFIRM: ("out",),
    Role.REJECT: ("out",),
    Role.DELIVER: ("out",),
    Role.ACK: ("in",),
    Role.OPEN: ("in",),
    Role.SHUT: ("in",),
    Role.REQUEST: ("in",),
    Role.RESPONSE: ("out",),
    Role.EVENT: ("out",),
}
#: The roles that a plan may be about, those that tests are mostly about first: Hypothesis shrinks to these.
ROLES = (
    Role.CONFIRM,
    Role.DELIVER,
    Role.PUBLISH,
    Role.ACK,
    Role.REJECT,
    Role.RESPONSE,
    Role.REQUEST,
    Role.EVENT,
    Role.FLOW,
    Role.HEARTBEAT,
    Role.OPEN,
    Role.SHUT,
    Role.CLOSE,
    Role.HANDSHAKE,
)


class Draw(NamedTuple):
    """An effect that can be drawn.

    Attributes:
        plain: One of the kind.
        settings: Strategies for its fields, for the longest time in seconds.
        ends: The connection ends after it.
    """

    plain: Effect
    settings: Callable[[float], dict[str, st.SearchStrategy[Any]]] = lambda longest: {}
    ends: bool = False

    @property
    def realism(self) -> Realism:
        """A frame that is cut is no defect of the broker where the connection ends after it."""
        return Realism.ENVIRONMENT if self.ends else self.plain.realism

    @property
    def acts(self) -> tuple[Effect, ...]:
        """Its effects, with plain settings."""
        return (self.plain, Rst()) if self.ends else (self.plain,)

    def drawn(self, longest: float) -> st.SearchStrategy[tuple[Effect, ...]]:
        """Its effects; times are `longest` seconds at most."""
        effect = st.builds(type(self.plain), **self.settings(longest))
        return st.tuples(effect, *map(st.just, self.acts[1:]))


def _seconds(longest: float) -> st.SearchStrategy[float]:
    """A time in thousandths, so that it shrinks and prints well."""
    return st.integers(1, max(1, round(longest * 1000))).map(lambda thousandths: thousandths / 1000)


#: From the plainest to the oddest: Hypothesis shrinks to the first that still fails.
DRAWS: Sequence[Draw] = (
    Draw(Drop()),
    Draw(Delay(seconds=0.1), lambda s: {"seconds": _seconds(s)}),
    Draw(Latency(seconds=0.1), lambda s: {"seconds": _seconds(s)}),
    Draw(Rst(), lambda s: {"pass_frame": st.booleans()}),
    Draw(Fin(), lambda s: {"pass_frame": st.booleans()}),
    Draw(Crash(), lambda s: {"restart_s": _seconds(s), "pass_frame": st.booleans()}),
    Draw(Refuse(), lambda s: {"for_s": _seconds(s)}),
    Draw(Silent(), lambda s: {"for_s": _seconds(s)}),
    Draw(Stall(), lambda s: {"for_s": _seconds(s)}),
    Draw(Slice(size=1), lambda s: {"size": st.integers(1, 20), "gap_s": st.just(0.0)}),
    Draw(Coalesce(), lambda s: {"frames": st.integers(2, 4), "within_s": _seconds(s)}),
    Draw(Throttle(bytes_per_s=1000), lambda s: {"bytes_per_s": st.integers(10_000, 1_000_000)}),
    Draw(Truncate(), lambda s: {"share": st.sampled_from((0.5, 0.1, 0.9))}, ends=True),
    Draw(Duplicate(), lambda s: {"times": st.integers(1, 3)}),
    Draw(Corrupt(), lambda s: {"length": st.integers(1, 4), "mend": st.booleans()}),
    Draw(Extend(hex="00"), lambda s: {"hex": st.binary(min_size=1, max_size=8).map(bytes.hex)}),
)


def faults(
    protocol: str,
    *,
    realism: Realism | str | Iterable[Realism | str] = (Realism.LEGAL, Realism.ENVIRONMENT),
    roles: Iterable[Role | str] = ROLES,
    positions: int = 5,
    seconds: float = 0.05,
    others: Iterable[Fault] = (),
    variant: str = "",
) -> st.SearchStrategy[Fault]:
    """Single faults that a fake of this protocol can carry out; see `fault_plans`."""
    found = find_protocol(protocol)
    wire = found.wire(variant) if variant else found.wires[0]
    allowed = _words(Realism, [realism] if isinstance(realism, str) else [*realism], "realism")
    wanted = _words(Role, [*roles], "role")
    if positions < 1 or not 0 < seconds < 3600:
        raise UsageError(f"expected positions from 1 and seconds above 0, got {positions} and {seconds}")
    strategies = []
    for draw, there in _possible(found, wire):
        matches = [match for role in wanted for match in there if match.role == role]
        if matches and draw.realism in allowed:
            strategies.append(_at_a_frame(draw, matches, positions, seconds))
    for each in others:
        _injector(found, wire).check(each, each.name or "others")
        if each.effective_realism in allowed:
            strategies.append(_at_a_position(each, positions))
    if not strategies:
        raise UsageError(f"{found.name} has no faults of these roles and this realism")
    return st.one_of(strategies)


def fault_plans(
    protocol: str,
    *,
    realism: Realism | str | Iterable[Realism | str] = (Realism.LEGAL, Realism.ENVIRONMENT),
    roles: Iterable[Role | str] = ROLES,
    least: int = 0,
    most: int = 3,
    positions: int = 5,
    seconds: float = 0.05,
    others: Iterable[Fault] = (),
    variant: str = "",
) -> st.SearchStrategy[Plan]:
    """Plans of a few faults that a fake of this protocol can carry out.

    Each fault takes place once, at one frame of the whole run, and lets go by itself what it keeps back, so
    that a client that tries again gets there. Failing plans shrink to few faults, early positions and short
    times.

    Args:
        protocol: Such as ``rabbitmq-stream``.
        realism: What may be drawn: ``legal`` (the client must go on), ``environment`` (it must recover),
            ``illegal`` (a broker's bug: it must notice); one, or several.
        roles: What the faults may be about, such as ``confirm``.
        least, most: How many faults.
        positions: The last frame that a fault waits for, counted among those of its role.
        seconds: How long delays, silences, refusals and the like last at most.
        others: Faults of your own, or of the protocol's own effects, to be drawn besides; those that say no
            position get one.
        variant: Which of the protocol's wires (``redis``); left out: the first one.

    Raises:
        UsageError: There is no such protocol, role or realism, or nothing that all of this allows.
        PlanError: One of `others` makes no sense for this protocol.
    """
    single = faults(
        protocol,
        realism=realism,
        roles=roles,
        positions=positions,
        seconds=seconds,
        others=others,
        variant=variant,
    )
    several = st.lists(single, min_size=least, max_size=most, unique_by=lambda each: each.name)
    return st.builds(lambda drawn: Plan(faults=tuple(drawn)), several)


def _words(kind: type[StrEnum], words: Iterable[str], what: str) -> list[Any]:
    known = [str(each) for each in kind]
    for word in words:
        if word not in known:
            raise UsageError(f"expected a {what}, {one_of(known, word)}")
    return [kind(word) for word in words]


def _injector(protocol: Protocol, wire: Wire) -> Injector:
    """What knows which faults this wire can have."""
    return Injector([wire], own=protocol.own_effects, protocol=protocol.name)


@cache
def _possible(protocol: Protocol, wire: Wire) -> list[tuple[Draw, list[Match]]]:
    """The effects that this wire can have, each with what it may wait for there."""
    injector = _injector(protocol, wire)
    return [
        (draw, [match for match in _matches(draw.plain, wire) if _can(injector, draw, match)])
        for draw in DRAWS
    ]


def _matches(effect: Effect, wire: Wire) -> Iterator[Match]:
    """What an effect may wait for on this wire: counted in the whole run, so that the plan comes to rest."""
    there = frozenset[Role]().union(*(spec.roles_in("") for spec in wire.frames.values()))
    for role in Role:
        for way in WAYS.get(role, ("out", "in")):
            if role in there and effect.direction in ("", way):
                yield Match(role=role, direction=way, scope="run")


def _can(injector: Injector, draw: Draw, match: Match) -> bool:
    """Whether this wire can have it."""
    try:
        injector.check(Fault(match=match, effects=draw.acts), "")
    except PlanError:
        return False
    return True


def _at_a_frame(
    draw: Draw, matches: Sequence[Match], positions: int, seconds: float
) -> st.SearchStrategy[Fault]:
    def build(match: Match, nth: int, effects: tuple[Effect, ...]) -> Fault:
        at = msgspec.structs.replace(match, nth=nth)
        name = f"{effect_name(draw.plain)} {match.role} {match.direction} {nth}"
        realism = Realism.ENVIRONMENT if draw.ends else None
        return Fault(name=name, match=at, effects=effects, realism=realism)

    # settings last: a choice before them that shrinks leaves the others as they are
    return st.builds(build, st.sampled_from(matches), st.integers(1, positions), draw.drawn(seconds))


def _at_a_position(template: Fault, positions: int) -> st.SearchStrategy[Fault]:
    """The fault as it is, or at a position if it says none; with a name, so that it is in a plan once."""
    match = template.match
    name = template.name or " ".join(map(effect_name, template.effects))
    if (match.nth, match.first, match.every, match.probability) != (None, None, None, None):
        return st.just(msgspec.structs.replace(template, name=name))

    def build(nth: int) -> Fault:
        at = msgspec.structs.replace(match, nth=nth, scope=match.scope or "run")
        return msgspec.structs.replace(template, match=at, name=f"{name} {nth}")

    return st.integers(1, positions).map(build)
