"""One chaos run, read: what invariants and checkers judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from conformance.run import material as run_material
from conformance.run.acts import ACTS
from conformance.run.case import Case
from conformance.run.specs import Spec
from conformance.run.trace import TraceRow
from conformance.search.random.context import Band
from conformance.search.random.schedule import Schedule
from fakebrokers.faults.drawing import BY_NAME
from fakebrokers.faults.steps import ACT, FAULT, Step
from fakebrokers.journal import RunJournal

LYING = {name for name, template in BY_NAME.items() if template.lies}


class ChaosRun(NamedTuple):
    """What the contract of a run depends on; see `conformance.suite.contract`."""

    protocol: str
    server: Mapping[str, Any] = {}
    sockets: bool | None = None


class ChaosCase(Case):
    """A run under a schedule.

    Attributes:
        bands: The steps that took place.
        journal: Where the run is written down, until it is over.
        log: The journal, which the checkers judge; None where the run did not come so far.
        digest: Of what happened, in order; equal for equal runs. "" where time is real.
        is_remote: Whether the server was a real one: then nothing but its history can be judged.
    """

    def __init__(self, schedule: Schedule, rows: list[TraceRow]) -> None:
        spec = Spec(schedule.protocol, schedule.params.get("script", f"chaos {schedule.workload}"))
        super().__init__(spec, run_material.material_of(schedule.protocol), rows, [], ())
        self.schedule = schedule
        self.bands: list[Band] = []
        self.journal: RunJournal | None = None
        self.digest = ""
        self.is_remote = False

    @property
    def is_truthful(self) -> bool:
        """Whether all that the client got is what the broker did."""
        return not any(_lies(step) for step in self.schedule.steps)


def _lies(step: Step) -> bool:
    if step.kind == ACT:
        return ACTS[step.args["act"]].lies
    return step.kind == FAULT and any(word in LYING for word in step.words)
