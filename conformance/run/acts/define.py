"""What an act is: one way to disturb a frame, with the parameters that make sense at a given frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from conformance.run.acts.inside import at_inside
from conformance.run.traits import Traits
from fakebrokers.core.frames import Frame, Role
from fakebrokers.faults.effect import Effect, Passage


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
Apply = Callable[[Passage, Any, Traits], None]


class Act(NamedTuple):
    """One way to disturb a frame.

    Attributes:
        about: What it does, for people; the docstring of its function.
        params: What it can be done with at a place; nothing where it makes no sense.
        apply: Does it.
        reach: With how many frames it has to do: that at hand, and those after it.
        by_kind: Whether it is another thing at another kind of frame, for the drawing order.
        lasting: It goes on, on all connections, until the faults are cleared.
        lies: What the client gets then may not be what the broker did: nothing that the broker holds
            can be compared with it.
    """

    name: str
    about: str
    params: Params
    apply: Apply
    reach: int = 1
    lies: bool = False
    by_kind: bool = True
    lasting: bool = False


ACTS: dict[str, Act] = {}


def act(
    name: str,
    params: Params,
    *,
    reach: int = 1,
    lies: bool = False,
    by_kind: bool = True,
    lasting: bool = False,
) -> Callable[[Apply], Apply]:
    """Declare an act; its docstring says what it does."""

    def register(apply: Apply) -> Apply:
        about = " ".join((apply.__doc__ or "").split())
        ACTS[name] = Act(name, about, params, apply, reach, lies, by_kind, lasting)
        return apply

    return register


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


class InjectedEffect(Effect, frozen=True, tag="bent"):
    """An act as an effect of a fault. `hit` gets the connection when it takes place."""

    takes_raw = True

    act: str
    param: Any
    traits: Any
    nth: int
    hit: Any

    def apply(self, passage: Passage) -> None:
        if passage.frame is None:
            passage.pass_through()
            return
        known = ACTS[self.act]
        if known.reach > 1:
            seen = passage.memory["seen"] = passage.memory.get("seen", 0) + 1
            if not self.nth <= seen < self.nth + known.reach:
                passage.pass_through()
                return
        self.hit(passage.connection)
        known.apply(at_inside(passage), self.param, self.traits)
