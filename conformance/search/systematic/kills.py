"""Which mutants the sweep finds by itself."""

from __future__ import annotations

from functools import cache

from conformance.rules import judge
from conformance.rules.registry import ALIVE, HARNESS
from conformance.run.inprocess import runner
from conformance.search.garbage import rare_collections
from conformance.search.kills import Budget, Kill
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.sweep import Sweep
from conformance.search.systematic.universe import DrawableSpec, universe


def kill(protocol: str, name: str, tag: str, seconds: float, parent: int = 0) -> Kill:
    """Sweep one mutant. A run that the correct client fails as well is no kill."""
    sweep = Sweep(runner(protocol, name))
    correct = runner(protocol)
    budget = Budget(seconds, parent)
    with rare_collections() as collect:
        for spec in DrawOrder(_items(protocol)):
            if budget.is_spent:
                break
            findings = sweep.try_one(spec)
            collect(sweep.runs)
            if not findings:
                continue
            excused = {finding.name for finding in judge(correct(spec))}
            if excused & {ALIVE, HARNESS}:
                continue  # the run is too much for this machine, and says nothing
            own = [finding for finding in findings if finding.name not in excused]
            if own:
                names = [finding.name for finding in own]
                return Kill(protocol, name, tag, names, sweep.runs, spec, own[0].detail)
    return Kill(protocol, name, tag, runs=sweep.runs)


@cache
def _items(protocol: str) -> list[DrawableSpec]:
    return universe(protocol)
