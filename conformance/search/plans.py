"""A replay file as a fault plan: all that the broker does in its run, for a client of one's own.

    fakebrokers serve rabbitmq-stream --faults cut-1f2e3d4c.replay.json

What the application does in that run, a plan does not have: it is the client's own matter.
"""

from __future__ import annotations

from pathlib import Path

from conformance.run.acts import fault_of
from conformance.run.material import traits_of
from conformance.run.specs import Spec
from conformance.search.random import replay as chaos
from conformance.search.random.material import material_of
from conformance.search.random.schedule import Schedule
from conformance.search.random.step_faults import rows_of
from conformance.search.systematic import replay as sweep
from fakebrokers.errors import PlanError
from fakebrokers.faults.disturbances import for_a_while, later
from fakebrokers.faults.plan import Plan, fault_from
from fakebrokers.faults.steps import ACT, FAULT
from fakebrokers.protocol import find_protocol


def plan_of(path: Path, protocol: str = "") -> Plan:
    """The plan of a replay file of the sweep or of chaos.

    Args:
        protocol: Of the fake that it is for; "": of any.

    Raises:
        UsageError: It is no such file.
        PlanError: It is of another protocol, or does something that no plan of a broker has.
    """
    file = chaos.read_chaos(path) if chaos.is_chaos(path) else sweep.load(path)
    if protocol not in ("", file.protocol):
        raise PlanError(str(path), f"expected a replay of {protocol}, got one of {file.protocol}")
    if isinstance(file, chaos.ChaosReplay):
        if besides := _not_in_plan(file.schedule):
            raise PlanError(str(path), f"'fakebrokers replay' can do this, and no plan: {'; '.join(besides)}")
        return _of_schedule(file.schedule)
    return _of_spec(file.spec)


def _of_spec(spec: Spec) -> Plan:
    traits = traits_of(spec.protocol)
    return Plan(faults=tuple(fault_of(injection, traits) for injection in spec.injections))


def _of_schedule(schedule: Schedule) -> Plan:
    """Each fault at its time, which counts from the start of the broker."""
    nemeses, protocol = material_of(schedule.protocol).nemeses, find_protocol(schedule.protocol)
    nodes = int(schedule.params.get("nodes", 1))
    faults = []
    for step in schedule.steps:
        disturbs = nemeses[step.kind].rows if step.kind in nemeses else None
        for row in rows_of(schedule.protocol, step, disturbs, nodes):
            lasting = for_a_while(row, step.for_s) if step.kind in (FAULT, ACT) else row
            faults.append(fault_from(later(lasting, step.at_s), step.name, protocol))
    return Plan(seed=schedule.plan_seed, faults=tuple(faults))


def _not_in_plan(schedule: Schedule) -> list[str]:
    """The steps that do something besides, to the client or to its peers."""
    nemeses = material_of(schedule.protocol).nemeses
    return [
        str(step)
        for step in schedule.steps
        if step.kind not in (FAULT, ACT) and not (step.kind in nemeses and nemeses[step.kind].in_plan)
    ]
