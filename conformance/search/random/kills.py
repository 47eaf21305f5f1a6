"""Which mutants chaos finds by itself."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.search.kills import Budget, Kill
from conformance.search.random.draw import Setting, draw
from conformance.search.random.run import runner
from conformance.search.random.schedule import Schedule
from conformance.search.random.verdict import Word, verdict_on
from conformance.search.random.workload import SCRIPT
from fakebrokers.faults import Realism

SCRIPTS = 3  #: for each mixture
REALISM = (Realism.ENVIRONMENT, Realism.ILLEGAL)


def kill(protocol: str, name: str, tag: str, seconds: float, parent: int = 0) -> Kill:
    """Try one mutant until it fails where the correct client passes; as the sweep's `kill`."""
    go, correct = runner(protocol, name), runner(protocol)
    budget = Budget(seconds, parent)
    for runs, schedule in enumerate(_schedules(protocol), 1):
        if budget.is_spent:
            break
        verdict = verdict_on(go(schedule))
        if verdict.word is not Word.FAIL:
            continue
        excused = verdict_on(correct(schedule)).names
        own = [found for found in verdict.names if found not in excused]
        if own:
            return Kill(protocol, name, tag, own, runs, None, schedule.about)
    return Kill(protocol, name, tag, runs=runs)


def _schedules(protocol: str) -> Iterator[Schedule]:
    """Both kinds of realism in turn: what only a broken broker does shows other defects than a network.

    And a mixture and three scripts in turn: these are over sooner, and there are more of them.
    """
    number = 0
    while True:
        number += 1
        for realism in REALISM:
            yield draw(Setting(protocol, realism), f"kill {number}")
            for part in range(SCRIPTS):
                yield draw(Setting(protocol, realism, (SCRIPT,)), f"kill {number} {part}")
