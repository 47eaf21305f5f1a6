"""What the application offers to others, as its ops say."""

from __future__ import annotations

from typing import Any

from conformance.sweep.case import Case
from conformance.sweep.tape import START, Moment


def offered(case: Case) -> list[tuple[Moment, Any]]:
    """Names of actions and patterns of events, from each change on; as `tracking.announced_by` has them."""
    if case.hits and any(done.args["options"].get("disable_balancer") for done in case.done("connect")):
        return []  # it may wait for the server before it tells anybody
    actions: dict[str, frozenset[str]] = {}
    events: set[str] = set()
    found: list[tuple[Moment, Any]] = [(START, (frozenset(), frozenset()))]
    for done in case.ops:
        if done.op not in ("mol.serve", "mol.unserve", "mol.listen") or done.result is None:
            continue
        if not done.result.ok or done.ended is None:
            continue
        if done.op == "mol.listen":
            events.add(done.args["event"])
        elif done.op == "mol.serve":
            service = done.args["service"]
            actions[service] = frozenset(f"{service}.{name}" for name in done.args["actions"])
        else:
            actions.pop(done.args["service"], None)
        found.append((done.ended, (frozenset().union(*actions.values()), frozenset(events))))
    return found
