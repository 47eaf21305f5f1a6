"""The smallest schedule that still fails: fewer steps, plainer ones, a smaller workload, less time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from conformance.chaos.schedule import Schedule, Step, to_json
from conformance.sweep.search import Search

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


def shrinking(fails: Callable[[Schedule], bool], most: int = EVALUATIONS_MAX) -> Search[Schedule]:
    """A search among schedules."""
    return Search(fails, most, candidates, to_json)


def candidates(schedule: Schedule) -> Iterator[Schedule]:
    """Simpler schedules, the greatest simplification first."""
    steps = schedule.steps
    if steps:
        yield replace(schedule, steps=())
    if len(steps) > 2:
        half = len(steps) // 2
        yield replace(schedule, steps=steps[half:])
        yield replace(schedule, steps=steps[:half])
    for number in range(len(steps)):
        yield replace(schedule, steps=steps[:number] + steps[number + 1 :])
    yield from _smaller_workloads(schedule)
    for number, step in enumerate(steps):
        for simpler in _simpler_steps(step):
            yield replace(schedule, steps=(*steps[:number], simpler, *steps[number + 1 :]))
    if schedule.seconds > SHORT_S:
        ends = [step.at_s + step.for_s for step in steps]
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


def _simpler_steps(step: Step) -> Iterator[Step]:
    """The same disturbance, sooner, shorter, nearer to the front."""
    if step.at_s > 0:
        yield replace(step, at_s=0.0)
        yield replace(step, at_s=int(step.at_s * 50) / 100)
    for for_s in (0.2, int(step.for_s * 50) / 100):
        if 0 < for_s < step.for_s:
            yield replace(step, for_s=for_s)
    match = step.args.get("match")
    if isinstance(match, Mapping):
        for name in ("nth", "first"):
            value = match.get(name, 1)
            for smaller in dict.fromkeys((1, value // 2)):
                if 0 < smaller < value:
                    yield replace(step, args={**step.args, "match": {**match, name: smaller}})
    times = step.args.get("times", 1)
    if isinstance(times, int) and times > 1:
        yield replace(step, args={**step.args, "times": times - 1})
