"""A state machine of Hypothesis in a simulation; the bytes of a schedule say which rules run, with what.

Hypothesis offers its tests to fuzzers, which hand them bytes: each byte decides something, and where they
end, the run of the machine does, too. So bytes that a seed gives are a run, and fewer are a shorter one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from fakebrokers.errors import UsageError

if TYPE_CHECKING:
    from fakebrokers.simulation.simulation import Simulation

#: How many bytes a run has: few rules, or as many as the machine's settings allow.
LENGTHS = (32, 64, 128, 256, 512, 2048)


def choices_of(seed: int) -> bytes:
    """What decides which rules run in the run of a seed."""
    random = Random(f"{seed} rules")
    return random.randbytes(random.choice(LENGTHS))


def is_machine(world: object) -> bool:
    """Whether it is the class of a state machine."""
    if not inspect.isclass(world):
        return False
    try:
        from hypothesis.stateful import RuleBasedStateMachine
    except ModuleNotFoundError:
        return False
    return issubclass(world, RuleBasedStateMachine)


class Machine:
    """A state machine as something to run.

    Args:
        place: Module and name, for errors.
        made: The class; it is made with a simulation.

    Raises:
        UsageError: It takes no simulation, or this Hypothesis takes no bytes for it.
    """

    def __init__(self, place: str, made: Any) -> None:
        from hypothesis import HealthCheck, Verbosity, settings
        from hypothesis.stateful import get_state_machine_test

        try:
            inspect.signature(made).bind(None)
        except TypeError:
            raise UsageError(
                f"{place}: expected a machine that takes a simulation: def __init__(self, simulation=None)"
            ) from None
        options = settings(
            made.TestCase.settings,
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.debug,  # so that it says each rule
        )
        factory: Any = lambda: made(self._simulation)  # noqa: E731 - Hypothesis reads its source
        test: Any = get_state_machine_test(factory, settings=options)
        if inspect.signature(test).parameters:
            raise UsageError("this version of Hypothesis is too old to simulate a state machine")
        self._made = made
        self._simulation: Simulation | None = None
        self._test = test.hypothesis.fuzz_one_input

    def run(self, simulation: Simulation, choices: bytes, say: Callable[[str], None]) -> None:
        """Run it once.

        Args:
            say: Called with each rule that has run, as Hypothesis writes it.

        Raises:
            BaseException: What a rule, an invariant or the teardown has raised.
        """
        from hypothesis.reporting import with_reporter

        begun = False

        def report(text: object) -> None:
            nonlocal begun
            begun = begun or str(text).startswith("state = ")  # before that Hypothesis speaks of itself
            if begun and not self._is_of_invariant(str(text)):
                say(str(text))

        self._simulation = simulation
        with with_reporter(report):
            self._test(choices)

    def _is_of_invariant(self, line: str) -> bool:
        """Whether it only says that an invariant was looked at, as after each rule."""
        function = getattr(self._made, line.removeprefix("state.").removesuffix("()"), None)
        return hasattr(function, "hypothesis_stateful_invariant")
