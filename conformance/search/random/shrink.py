"""The smallest schedule that still fails: fewer steps, plainer ones, a smaller workload, less time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from conformance.search.random.schedule import Schedule, to_json
from conformance.search.shrink import Simpler
from fakebrokers.faults.steps import fewer, simpler

EVALUATIONS_MAX = 200
#: What a workload has least of; settings that are not here shrink to 0 or to their first choice.
LEAST: Mapping[str, Any] = {
    "sessions": 1,
    "targets": 1,
    "publishers": 1,
    "messages": 1,
    "consumers": 1,
    "puts": 1,
    "requests": 1,
    "nodes": 1,
    "size": 0,
    "sleep_ms": 0,
}
SHORT_S = 1.0  #: a safety phase that is no longer is not made shorter


def candidates(schedule: Schedule) -> Iterator[Schedule]:
    """Simpler schedules, the greatest simplification first."""
    for steps in fewer(schedule.steps):
        yield replace(schedule, steps=steps)
    yield from _smaller_workloads(schedule)
    for steps in simpler(schedule.steps):
        yield replace(schedule, steps=steps)
    if schedule.seconds > SHORT_S:
        ends = [step.at_s + step.for_s for step in schedule.steps]
        for seconds in dict.fromkeys((max([SHORT_S, *ends]), schedule.seconds / 2)):
            if seconds < schedule.seconds:
                yield replace(schedule, seconds=round(seconds, 2))


def _smaller_workloads(schedule: Schedule) -> Iterator[Schedule]:
    for name, value in schedule.params.items():
        least = LEAST.get(name)
        if least is None or value <= least:
            continue
        for smaller in dict.fromkeys((least, value // 2)):
            if least <= smaller < value:
                yield replace(schedule, params={**schedule.params, name: smaller})


SIMPLER = Simpler(candidates, to_json, EVALUATIONS_MAX)
