"""Whether a seed gives the same run again, and where not."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from fakebrokers.errors import DoesNotRepeat
from fakebrokers.simulation.hashes import VARIABLE, Order, lines_of, order_for
from fakebrokers.simulation.simulation import Simulation


class Line(NamedTuple):
    """One thing that happened in a run."""

    at: float
    where: str
    what: str

    def __str__(self) -> str:
        return f"at {self.at:.6f} s, {self.where}: {self.what}"


def transcript(simulation: Simulation) -> list[Line]:
    """What happened in a run: the journals of all brokers, and what has arrived where that was noted."""
    lines = [Line(at, way, data.hex()) for at, way, data in simulation.network.links.trace or ()]
    for name, broker in simulation.brokers.items():
        start = broker.journal.started_at
        lines += [Line(start + record.at, name, repr(record)) for record in broker.journal.records()]
    return sorted(lines, key=lambda line: line.at)


def check_repeats(
    scenario: Callable[[Simulation], Coroutine[Any, Any, object]],
    seed: int = 0,
    *,
    hash_seeds: Sequence[int] = (),
    **options: Any,
) -> list[Line]:
    """Run a scenario twice from one seed; what happened in it.

    Args:
        scenario: Gets a fresh simulation, and runs in it.
        hash_seeds: Run it besides in a fresh process for each of these values of ``PYTHONHASHSEED``, which
            imports the scenario's module: both runs here see sets of strings in the same order.
        options: Of `Simulation`.

    Raises:
        DoesNotRepeat: The runs differ; the text has the first difference.
        UsageError: There are `hash_seeds`, and the scenario is no function of a module.
    """
    order = order_for(scenario, seed, options) if hash_seeds else None
    one, other = (run_once(scenario, seed, options) for _ in range(2))
    if text := difference(one, other):
        raise DoesNotRepeat(f"seed {seed} does not repeat; {text}")
    if order is not None:
        _compare_orders(order, hash_seeds)
    return one


def _compare_orders(order: Order, hash_seeds: Sequence[int]) -> None:
    """Run it in processes of their own that differ in the order of sets of strings."""
    first = lines_of(order, hash_seeds[0])
    for other in hash_seeds[1:]:
        if text := difference(*([Line(*line) for line in run] for run in (first, lines_of(order, other)))):
            raise DoesNotRepeat(
                f"seed {order.seed} goes another way where sets of strings have another order "
                f"({VARIABLE}={hash_seeds[0]}, then {other}); {text}"
            )


def difference(one: Sequence[object], other: Sequence[object]) -> str:
    """The first difference between two runs; "" if there is none."""
    for number, (first, second) in enumerate(zip_longest(one, other), start=1):
        if first != second:
            return (
                f"line {number} of {len(one)} is the first that differs:\n"
                f"  first run:  {first or 'it had ended'}\n"
                f"  second run: {second or 'it had ended'}"
            )
    return ""


def run_once(
    scenario: Callable[[Simulation], Coroutine[Any, Any, object]], seed: int, options: dict[str, Any]
) -> list[Line]:
    """What happens in a scenario, and what it returns at its end."""
    with Simulation(seed, **options) as simulation:
        simulation.network.links.trace = []
        result = simulation.run(scenario(simulation))
        end = Line(simulation.now, "the end", _shown(result))
        lines = transcript(simulation)
    return [*lines, end]


def _shown(result: object) -> str:
    """A result as text; equal sets are shown alike."""
    if isinstance(result, set | frozenset):
        return f"{{{', '.join(sorted(map(repr, result)))}}}"
    return repr(result)
