"""The faults of a step: what a broker does of it."""

from __future__ import annotations

from collections.abc import Callable

from conformance.search.random.acts import DrawnAct
from fakebrokers.faults.disturbances import Row
from fakebrokers.faults.steps import FAULT, Step


def rows_of(
    protocol: str,
    step: Step,
    disturbs: Callable[[Step, int], list[Row]] | None,
    nodes: int = 1,
    did: list[str] | None = None,
) -> list[Row]:
    """A step as rows of a fault plan, counted from its beginning.

    Args:
        disturbs: The rows of the nemesis of its kind; None: it is a fault at frames, which lasts until it is
            taken out.
        nodes: How many the broker has.
        did: Gets what acts did.
    """
    if disturbs is not None:
        return disturbs(step, nodes)
    if step.kind == FAULT:
        return [{**step.args, "name": step.name}]
    effect = DrawnAct(act=step.args["act"], protocol=protocol, did=did)
    return [{"name": step.name, "match": step.args["match"], "effect": [effect]}]
