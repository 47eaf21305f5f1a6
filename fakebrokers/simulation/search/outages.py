"""A schedule at work in a simulation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fakebrokers.faults.steps import FAULT, Step
from fakebrokers.simulation.search.nemeses import NEMESES, WIRE_FAULT, Nemesis
from fakebrokers.simulation.search.schedule import Schedule, words_of

if TYPE_CHECKING:
    from fakebrokers.simulation.simulation import Simulation


class Outages:
    """Begins and ends the steps of a schedule.

    Attributes:
        lines: What it did, and when.
    """

    def __init__(self, simulation: Simulation, schedule: Schedule) -> None:
        self.lines: list[tuple[float, str]] = []
        self._simulation = simulation
        self._schedule = schedule
        self._began: dict[str, Step] = {}

    async def run(self) -> None:
        """All steps; returns when the last one is over."""
        steps = self._schedule.steps
        moments = sorted({moment for step in steps for moment in (step.at_s, step.at_s + step.for_s)})
        for moment in moments:
            await asyncio.sleep(moment - self._simulation.now)
            for step in steps:
                if step.at_s == moment:
                    self._begin(step)
            for step in steps:
                if step.at_s + step.for_s == moment:
                    self._end(step)

    def _begin(self, step: Step) -> None:
        if _nemesis(step).begin(self._simulation, step):
            self._began[step.name] = step
            self._note(f"{step.name} begins: {words_of(step)}")
        else:
            self._note(f"{step.name} finds no {step.target} that runs: {words_of(step)}")

    def _end(self, step: Step) -> None:
        if self._began.pop(step.name, None) is not None:
            _nemesis(step).end(self._simulation, step)
            if step.for_s:
                self._note(f"{step.name} is over")

    def _note(self, text: str) -> None:
        self.lines.append((self._simulation.now, text))


def _nemesis(step: Step) -> Nemesis:
    return WIRE_FAULT if step.kind == FAULT else NEMESES[step.kind]
