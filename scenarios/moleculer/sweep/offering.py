"""What the application offers to others, as its ops say, and as whom the client does so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.sweep.case import Case
from conformance.sweep.facts import Facts
from conformance.sweep.tape import START, Moment
from fakebrokers.moleculer.packets import Info


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


def other_selves(facts: Facts, begins: Sequence[Moment]) -> Iterator[tuple[Moment, str]]:
    """Where a node tells of itself as of another one, without having begun anew.

    Whoever hears of another instance drops what he knows, and whoever hears an older number drops what he is
    told (docs/protocols/moleculer.md, 3).

    Args:
        begins: When the application has connected.
    """
    last: dict[str, tuple[Moment, Info]] = {}
    for one in sorted(facts.sent, key=lambda sent: sent.at):
        info = one.frame
        if not isinstance(info, Info):
            continue
        since, former = last.get(info.sender, (one.at, info))
        last[info.sender] = one.at, info
        if any(since < begun < one.at for begun in begins):
            continue
        if info.instanceID != former.instanceID:
            yield one.at, f"an INFO of instance {info.instanceID!r}, it was {former.instanceID!r}"
        elif info.seq < former.seq:
            yield one.at, f"an INFO with seq {info.seq} behind one with {former.seq}"
