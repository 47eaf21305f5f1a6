"""What 5,000 faults cost, in CPU time of the process beside a fake without any: ratios within one run."""

from __future__ import annotations

import time
from statistics import median

import pytest

from fakebrokers.faults import Fault, Plan, load_plan
from fakebrokers.faults.effects import Drop
from fakebrokers.faults.match import Match
from tests.core.talk import Talk

pytestmark = pytest.mark.benchmark

MANY = 5000


def per_frame(talk: Talk) -> float:
    """CPU seconds of a put and its answer."""
    found = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(2000):
            talk.send(b"put a x")
        found.append((time.process_time() - begun) / 2000)
    return median(found)


def faults(**match: str) -> list[Fault]:
    never = Match(nth=1_000_000, **match)  # type: ignore[arg-type]
    return [Fault(name=f"f{number}", match=never, effects=(Drop(),)) for number in range(MANY)]


def test_frames() -> None:
    none = per_frame(Talk())
    others = per_frame(Talk(*faults(kind="Get")))
    print(f"\n{MANY} faults of another kind: {others / none:.2f} x the CPU per frame")
    assert others < 1.5 * none


def test_reading_a_plan() -> None:
    row = {"match": {"role": "publish", "nth": 9}, "effect": {"type": "drop"}}

    def seconds(count: int) -> float:
        rows = [{**row, "name": f"f{number}"} for number in range(count)]
        begun = time.process_time()
        plan: Plan = load_plan({"faults": rows})
        Talk(*plan.faults)
        return time.process_time() - begun

    few, many = median(seconds(MANY // 10) for _ in range(3)), seconds(MANY)
    print(f"\n{MANY} faults are read in {many:.2f} s, {many / few:.1f} x a tenth of them")
    assert many < 20 * few
