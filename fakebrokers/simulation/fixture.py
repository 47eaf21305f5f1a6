"""The fixture ``simulation``, and how an async test runs in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fakebrokers.pytest_fixtures import lived_in
from fakebrokers.pytest_settings import SETTINGS
from fakebrokers.simulation.hashes import VARIABLE, fixed_hash_seed
from fakebrokers.simulation.simulation import Simulation

if TYPE_CHECKING:
    import pytest


def simulation_of(request: pytest.FixtureRequest) -> Iterator[Simulation]:
    """A fresh simulation with the options of the marker closest to the test."""
    options: dict[str, Any] = {"seed": request.config.stash[SETTINGS].seed or 0}
    marker = request.node.get_closest_marker("simulation")
    if marker is not None:
        options |= marker.kwargs
    lived = lived_in(request.node)
    with Simulation(**options) as simulation:
        simulation.started = lambda name, broker: lived.started.append((name, broker))
        yield simulation


def run_test(item: pytest.Function) -> bool | None:
    """Run an async test in its simulation; None if it is none."""
    __tracebackhide__ = True
    simulation = item.funcargs.get("simulation")
    test = inspect.unwrap(item.obj)  # plugins for async tests wrap them
    if not isinstance(simulation, Simulation) or not inspect.iscoroutinefunction(test):
        return None
    names = item._fixtureinfo.argnames
    simulation.run(test(**{name: item.funcargs[name] for name in names}))
    return True


def report_of(item: pytest.Item) -> str | None:
    """What the report of a failed test says of its simulation; None if it has none."""
    simulation = (getattr(item, "funcargs", None) or {}).get("simulation")
    if not isinstance(simulation, Simulation):
        return None
    from fakebrokers.pytest_report import replay_command

    settings = item.config.stash[SETTINGS]
    again = replay_command(item, (f"--fakebrokers-seed={simulation.seed}", *settings.replay))
    line = f"seed {simulation.seed}, ended at {simulation.now:g} s; again: {again}"
    if fixed_hash_seed() is not None:
        return line
    return (
        f"{line}\nThe order of sets of strings was drawn when this process began, and another process draws "
        f"another: a seed repeats everywhere only with {VARIABLE} in the environment, such as {VARIABLE}=0."
    )
