"""Which plan is tried next, where lines of the application steer that.

A plan that has reached lines which none had reached before is kept, and what is drawn next is often one of
those with a change: another fault besides, most of all. So a bug that needs a second fault while the
application is still busy with the first one does not need both of them by chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import msgspec
from msgspec.structs import replace

from fakebrokers.faults.steps import Step
from fakebrokers.simulation.search.draw import TRIES, clash, draw_step
from fakebrokers.simulation.search.lines import Place
from fakebrokers.simulation.search.schedule import VERSION, Schedule
from fakebrokers.simulation.search.survey import Survey

#: How often a kept plan is changed, where there are any; else a plan is drawn as without steering.
STEERED = 0.75
#: Plans of which the one is taken that was changed least often so far.
COMPARED = 3
#: More faults in one plan hide what fewer would show.
STEPS_MAX = 8
#: How many faults a change adds.
ADDED = (1, 1, 2, 3)
#: How often it leaves one out that was there.
LEFT_OUT = 0.2
#: How often an added fault begins when a new line was reached, or so many seconds later at most.
NEAR = 0.75
NEAR_S = (0.0, 1.0, 10.0, 60.0)


class Kept(msgspec.Struct):
    """A plan that has reached something new.

    Attributes:
        survey: Who took part in its run, and when frames passed.
        moments: Virtual times at which new lines were reached.
        used: How often it was changed.
    """

    schedule: Schedule
    survey: Survey
    moments: Sequence[float]
    used: int = 0


class Corpus:
    """The plans that have reached something new, in the order of their seeds.

    Attributes:
        seen: All lines that were reached.
    """

    def __init__(self) -> None:
        self.seen: set[Place] = set()
        self._kept: list[Kept] = []

    def add(self, schedule: Schedule, survey: Survey, new: Mapping[Place, float]) -> None:
        """A plan has reached something new, each line at its virtual time."""
        self.seen.update(new)
        if schedule.steps or schedule.choices:  # a change of none is what is drawn anyway
            self._kept.append(Kept(schedule, survey, sorted(set(new.values()))))

    def choose(self, seed: int) -> Kept | None:
        """The plan to change for this seed; None: draw one."""
        random = Random(f"{VERSION} {seed} which")
        if not self._kept or random.random() >= STEERED:
            return None
        few = [random.choice(self._kept) for _ in range(COMPARED)]
        chosen = min(few, key=lambda kept: kept.used)
        chosen.used += 1
        return chosen


def changed(kept: Kept, seed: int, seconds: float, there: Sequence[str]) -> Schedule:
    """The plan of a seed: a kept one with a change.

    Args:
        seconds: Virtual time in which faults may be.
        there: Names of what may be drawn.
    """
    random = Random(f"{VERSION} {seed} change")
    steps = list(kept.schedule.steps)
    if steps and (len(steps) >= STEPS_MAX or random.random() < LEFT_OUT):
        steps.pop(random.randrange(len(steps)))
    for _ in range(min(random.choice(ADDED), STEPS_MAX - len(steps))):
        for _ in range(TRIES):
            step = _another(random, kept, seconds, random.choice(there), _free_name(steps))
            if step is not None and not any(clash(step, other) for other in steps):
                steps.append(step)
                break
    choices = kept.schedule.choices
    if choices and random.random() < 0.5:  # the same beginning, and other rules from then on
        begin = random.randrange(len(choices))
        choices = choices[:begin] + random.randbytes(len(choices) - begin)
    ordered = tuple(sorted(steps, key=lambda step: step.at_s))
    return replace(kept.schedule, seed=seed, steps=ordered, choices=choices)


def _another(random: Random, kept: Kept, seconds: float, kind: str, name: str) -> Step | None:
    """A step of a kind, mostly when the application was where none had brought it before."""
    step = draw_step(random, kept.survey, kind, seconds, name)
    if step is None or random.random() >= NEAR:
        return step
    at_s = random.choice(kept.moments) + random.uniform(0, random.choice(NEAR_S))
    return replace(step, at_s=round(min(at_s, seconds), 3))


def _free_name(steps: Sequence[Step]) -> str:
    used = {step.name for step in steps}
    return next(name for number in range(1, len(steps) + 2) if (name := f"fault {number}") not in used)
