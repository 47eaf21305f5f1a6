"""Disturbances of a run as plain values, each at its time, and how such a list becomes simpler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

FAULT = "fault"  #: the kind of a step that is a row of a fault plan
ACT = "act"  #: and of one that is an act of the sweep


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One disturbance.

    Attributes:
        kind: The name of a nemesis, or ``fault``: then `args` is a row of a fault plan.
        at_s: When it begins, seconds from the beginning of the safety phase.
        for_s: How long it lasts; it ends with the safety phase at the latest.
        args: How exactly; all that was drawn.
        name: Its own in the schedule. Random numbers are drawn by it, so that leaving out another step
            changes none of them.
        target: Whom it is about, where there are several.
    """

    kind: str
    at_s: float
    for_s: float
    args: Mapping[str, Any] = {}
    name: str = ""
    target: str = ""

    @property
    def words(self) -> Iterator[str]:
        """What is done: the nemesis, the act, or the types of the effects."""
        if self.kind == ACT:
            yield self.args["act"]
        elif self.kind == FAULT:
            effects = self.args["effect"]
            yield from (each["type"] for each in (effects if isinstance(effects, list) else [effects]))
        else:
            yield self.kind

    def __str__(self) -> str:
        said = ", ".join(f"{name} {short(value)}" for name, value in self.args.items() if name != "name")
        what = f"{self.kind} of {self.target}" if self.target else self.kind
        return f"{self.at_s:g} s to {self.at_s + self.for_s:g} s: {what}{f' ({said})' if said else ''}"


def fewer(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Some of the steps, the greatest simplification first."""
    if steps:
        yield ()
    if len(steps) > 2:
        half = len(steps) // 2
        yield steps[half:]
        yield steps[:half]
    for number in range(len(steps)):
        yield steps[:number] + steps[number + 1 :]


def simpler(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """As many steps, one of them simpler."""
    for number, step in enumerate(steps):
        for other in _simpler_steps(step):
            yield (*steps[:number], other, *steps[number + 1 :])


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


def short(value: Any) -> str:
    """A value, for people."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {short(each)}" for name, each in value.items()) + "}"
    return f"{value:g}" if isinstance(value, float) else str(value)
