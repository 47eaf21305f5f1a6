"""What an act is: faults of one kind, with the parameters that make sense at a given frame.

What an act does are effects of a fault plan: those that all users have where they suffice, else one that
reads the frame at hand and asks the traits of its protocol (`AtFrame`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from conformance.run.acts.inside import at_inside
from conformance.run.material import traits_of
from conformance.run.specs import EVERY, Injection
from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame, Role, kind_of
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage
from fakebrokers.faults.effects import Inject
from fakebrokers.faults.match import Match
from fakebrokers.faults.plan import Fault
from fakebrokers.protocol import find_protocol
from fakebrokers.reading import one_of, plain_value


class InjectionPoint(NamedTuple):
    """A frame of a run, where an act can take place.

    Attributes:
        connection, direction, nth: Which frame; as in `specs.Injection`.
        size: Bytes on the wire.
        ordinal: The how manieth frame of its kind and direction this is in the run, from 1.
        data: Its unit on the wire.
    """

    connection: str
    direction: str
    nth: int
    frame: Frame
    size: int
    ordinal: int
    data: Any

    @property
    def role(self) -> Role:
        """What the frame is for."""
        return type(self.frame).spec.role_in(self.direction)


#: A class of parameters, for the drawing order, and a parameter as plain values.
Param = tuple[str, Any]
Params = Callable[[InjectionPoint, Traits], Iterable[Param]]
#: What is done, with a parameter.
Effects = Callable[[Any, Traits], Sequence[Effect]]
#: The same to the frame at hand.
Apply = Callable[[Passage, Any, Traits], None]


class Act(NamedTuple):
    """Faults of one kind.

    Attributes:
        about: What it does, for people; the docstring of its function.
        params: What it can be done with at a place; nothing where it makes no sense.
        effects: Makes what is done.
        reach: With how many frames it has to do: that at hand, and those after it.
        by_kind: Whether it is another thing at another kind of frame, for the drawing order.
        lasting: It goes on, on all connections, until the faults are cleared: at every frame of a kind, from
            the n-th of the run on. Its parameters begin with that kind and number.
        lies: What the client gets then may not be what the broker did: nothing that the broker holds
            can be compared with it.
    """

    name: str
    about: str
    params: Params
    effects: Effects
    reach: int = 1
    lies: bool = False
    by_kind: bool = True
    lasting: bool = False

    def match(self, injection: Injection) -> Match:
        """Which frames an injection of this act is for."""
        direction: Any = injection.direction
        if self.lasting:
            kind, first, *_ = injection.param
            return Match(direction=direction, kind=kind, skip=first - 1, scope="run")
        every = injection.connection == EVERY
        named = None if every else injection.connection
        scope: Any = "connection" if every else None
        nth = injection.nth
        if self.reach > 1:
            return Match(
                direction=direction, connection=named, skip=nth - 1, first=nth + self.reach - 1, scope=scope
            )
        return Match(direction=direction, connection=named, nth=nth, scope=scope)


ACTS: dict[str, Act] = {}
_AT_FRAMES: dict[str, Apply] = {}


def fault_of(injection: Injection, traits: Traits) -> Fault:
    """An injection as a row of a fault plan."""
    act = ACTS[injection.act]
    return Fault(match=act.match(injection), effects=tuple(act.effects(injection.param, traits)))


def act(
    name: str,
    params: Params,
    *,
    reach: int = 1,
    lies: bool = False,
    by_kind: bool = True,
    lasting: bool = False,
) -> Callable[[Effects], Effects]:
    """Declare an act by a function that makes its effects; its docstring says what they do."""

    def register(effects: Effects) -> Effects:
        about = " ".join((effects.__doc__ or "").split())
        ACTS[name] = Act(name, about, params, effects, reach, lies, by_kind, lasting)
        return effects

    return register


def act_at_frame(name: str, params: Params, *, lies: bool = False) -> Callable[[Apply], Apply]:
    """Declare an act by what it does to the frame at hand, which no other effect can."""

    def register(apply: Apply) -> Apply:
        applied(name)(apply)
        about = " ".join((apply.__doc__ or "").split())
        ACTS[name] = Act(name, about, params, lambda param, traits: [at_frame(name, param, traits)], 1, lies)
        return apply

    return register


def applied(name: str) -> Callable[[Apply], Apply]:
    """What an act of that name does to the frame at hand where its other effects cannot."""

    def register(apply: Apply) -> Apply:
        _AT_FRAMES[name] = apply
        return apply

    return register


class AtFrame(Effect, frozen=True, tag="act"):
    """An act that reads the frame at hand.

    Attributes:
        act: Its name.
        protocol: Whose traits it asks.
        param: With what; plain values.
    """

    takes_raw = True

    act: str
    protocol: str
    param: Any = None

    def apply(self, passage: Passage) -> None:
        if passage.frame is None:
            passage.pass_through()
        else:
            _AT_FRAMES[self.act](at_inside(passage), self.param, traits_of(self.protocol))

    def check(self, path: str) -> None:
        if self.act not in _AT_FRAMES:
            raise PlanError(f"{path}.act", f"expected {one_of(sorted(_AT_FRAMES), self.act)}")


def at_frame(name: str, param: Any, traits: Traits) -> AtFrame:
    """The effect of such an act."""
    return AtFrame(act=name, protocol=traits.protocol, param=param)


def is_stream(traits: Traits) -> bool:
    """Whether effects can work on the bytes of a frame: no library owns them."""
    return find_protocol(traits.protocol).wires[0].stream


def said(frame: Frame | None) -> Sequence[Effect]:
    """What makes the server say a frame after the one at hand."""
    if frame is None:
        return []
    fields = {name: plain_value(getattr(frame, name)) for name in frame.__struct_fields__}
    return [Inject(kind=kind_of(frame), fields=fields)]


def always(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """Everywhere, and there is nothing to choose."""
    yield "", None


def outwards(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
    """At every frame for the client."""
    if place.direction == "out":
        yield "", None


def choices(*values: Any, few: bool = True, direction: str = "out") -> Params:
    """These values, at the first two frames of each kind unless `few` is False."""

    def params(place: InjectionPoint, traits: Traits) -> Iterable[Param]:
        if direction in ("", place.direction) and (not few or place.ordinal <= 2):
            for value in values:
                yield str(value), value

    return params
