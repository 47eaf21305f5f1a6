"""A schedule from a seed: the same seed, version and survey give the same one, bit for bit.

Every run has a mix of its own: each kind of fault is left out with a chance of one half, because a mix of all
of them hides what one alone would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from fakebrokers.core.frames import Role
from fakebrokers.errors import UsageError
from fakebrokers.faults import Realism
from fakebrokers.faults.drawing import BY_NAME, TEMPLATES, draw_fault
from fakebrokers.faults.steps import FAULT, Step
from fakebrokers.protocol import find_protocol
from fakebrokers.reading import one_of
from fakebrokers.simulation.search.nemeses import NEMESES
from fakebrokers.simulation.search.schedule import VERSION, Schedule
from fakebrokers.simulation.search.survey import BrokerSeen, Survey

#: How many faults a run has.
STEPS = (0, 1, 1, 2, 2, 3, 4, 6)
LENGTHS_S = (0.5, 2.0, 10.0, 60.0, 300.0)
#: Within which share of the time they are.
SHARES = (0.02, 0.2, 1.0, 1.0)
#: What is drawn as often as all other roles together: what becomes of messages is what most worlds check.
MESSAGES = frozenset({Role.PUBLISH, Role.CONFIRM, Role.REJECT, Role.DELIVER, Role.ACK})
TRIES = 5


def kinds(realism: Realism, wanted: Sequence[str] = ()) -> list[str]:
    """The names of what may be drawn.

    Args:
        realism: The worst that may happen.
        wanted: Only these; none: all.

    Raises:
        UsageError: One of `wanted` is none, or worse than that.
    """
    order = list(Realism)
    worst = order.index(realism)
    there = [*NEMESES, *(each.name for each in TEMPLATES if order.index(each.realism) <= worst)]
    for name in wanted:
        if name not in there:
            raise UsageError(f"--fault: expected {one_of(there, name)}")
    return [name for name in dict.fromkeys(there) if not wanted or name in wanted]


def draw(seed: int, survey: Survey, seconds: float, there: Sequence[str], *, shuffle: bool) -> Schedule:
    """The schedule of a seed.

    Args:
        seconds: Virtual time in which faults may be.
        there: Names of what may be drawn, see `kinds`.
    """
    random = Random(f"{VERSION} {seed}")
    mix = [name for name in there if random.random() < 0.5] or list(there)
    window = seconds * random.choice(SHARES)
    steps: list[Step] = []
    for number in range(random.choice(STEPS)):
        for _ in range(TRIES):
            step = draw_step(random, survey, random.choice(mix), window, f"fault {number + 1}")
            if step is not None and not any(clash(step, other) for other in steps):
                steps.append(step)
                break
    return Schedule(seed, seconds, shuffle, tuple(sorted(steps, key=lambda step: step.at_s)))


def draw_step(random: Random, survey: Survey, kind: str, window: float, name: str) -> Step | None:
    """A step of a kind, about what took part in a run; None where there is nothing that it could be about.

    Args:
        window: Virtual seconds in which it begins.
    """
    early = [moment for moment in survey.moments if moment <= window]
    at_s = random.choice((0.0, round(random.uniform(0, window), 2)))
    if early and random.random() < 0.5:
        at_s = random.choice(early)
    for_s = min(random.choice(LENGTHS_S), round(window, 2))
    if kind in BY_NAME and (kind not in NEMESES or random.random() < 0.5):
        at_s, for_s = random.choice(((0.0, round(window, 2)), (at_s, for_s)))
        target = random.choice(list(survey.brokers) or [""])
        row = _fault(random, survey.brokers.get(target), kind)
        return None if row is None else Step(FAULT, at_s, for_s, row, name, target)
    targets = NEMESES[kind].targets(survey)
    if not targets:
        return None
    return Step(kind, at_s, for_s, NEMESES[kind].args(random), name, random.choice(targets))


def _fault(random: Random, broker: BrokerSeen | None, kind: str) -> dict[str, Any] | None:
    """A fault at frames that went over the wire, at one of as many as there were."""
    if broker is None:
        return None
    counts = {(each.direction, each.role): each.count for each in broker.spoken}
    fitting = [place for place in counts if BY_NAME[kind].direction in ("", place[0])]
    if not fitting:
        return None
    about = [place for place in fitting if place[1] in MESSAGES]
    if about and random.random() < 0.5:
        fitting = about
    row = draw_fault(BY_NAME[kind], find_protocol(broker.protocol), fitting, random)
    if row is not None and "nth" in row["match"]:
        match = row["match"]
        match["nth"] = random.randint(1, counts[match["direction"], match["role"]])
        match["scope"] = "run"
    return row


def clash(step: Step, other: Step) -> bool:
    """Whether both would do the same to the same at the same time, so that one would end the other."""
    same = (step.kind, step.target) == (other.kind, other.target) and step.kind != FAULT
    apart = step.at_s + step.for_s < other.at_s or other.at_s + other.for_s < step.at_s
    return same and not apart
