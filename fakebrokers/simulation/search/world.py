"""What a user builds a system in a simulation with, and what checks it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from fakebrokers.errors import UsageError, instead_of
from fakebrokers.simulation.search.machine import Machine, is_machine


class World(NamedTuple):
    """What is simulated.

    Attributes:
        main: An async function that gets the simulation, or a state machine.
        checks: Functions, async or not, that get it when everything is healed.
    """

    main: Callable[[Any], Any] | Machine
    checks: Sequence[Callable[[Any], Any]] = ()

    @property
    def is_machine(self) -> bool:
        """Whether rules are drawn, too."""
        return isinstance(self.main, Machine)


def find_world(main: str, checks: Sequence[str] = ()) -> World:
    """Import it; the working folder is looked at first.

    Raises:
        UsageError: There is no such module or function, or it is no async one and no state machine.
    """
    function = _find(main)
    if is_machine(function):
        if checks:
            raise UsageError("--check: a state machine checks in its invariants and in its teardown")
        return World(Machine(main, function))
    if not inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{main}: expected an async function that gets the simulation, or a RuleBasedStateMachine, "
            f"got {function!r}"
        )
    return World(function, [_find(each) for each in checks])


def _find(place: str) -> Callable[[Any], Any]:
    name, colon, attribute = place.partition(":")
    if not colon or not name or not attribute:
        raise UsageError(f"expected MODULE:FUNCTION such as shop_world:main, got {place!r}")
    module = _module(name)
    there = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
    function = getattr(module, attribute, None)
    if not callable(function):
        raise UsageError(f"the module {name!r} has no function {attribute!r}{instead_of(attribute, there)}")
    found: Callable[[Any], Any] = function
    return found


def _module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise UsageError(
            f"there is no module {name!r}: it is looked for in the working folder and where Python looks"
        ) from None
