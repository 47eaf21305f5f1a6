"""A pass is earned: the client was there, the faults took place, something was demanded and met.

One rule for all scenarios, so that none has to remember it. What a scenario need not earn it says itself,
with the reason: ``@scenario(..., unfired=...)`` and ``unconnected=``, or ``expect.may_not_fire(...)``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from conformance.suite.evidence import proxy_of
from conformance.suite.expect import Expect, Inconclusive
from conformance.suite.scenario import Scenario
from fakebrokers.journal import Tap


def demand_earned(scenario: Scenario, broker: Any, expect: Expect) -> None:
    """Raise `Inconclusive` for a script that ended well without having tried the client.

    Args:
        broker: The fake, perhaps stopped; against a real broker nothing of it can be seen.
    """
    if not expect.wire_visible or not hasattr(broker, "journal"):
        return
    if not scenario.unconnected and not was_there(broker):
        raise Inconclusive("no connection ever came from the client", id="no-connection")
    if not scenario.unfired:
        for name in unfired(broker):
            if not any(fnmatchcase(name, excused) for excused in expect.unfired):
                raise Inconclusive(f"the fault {name!r} never took place", id="fault-never-fired")
    if not expect.met and not expect.tolerated:
        raise Inconclusive("the script demanded nothing", id="nothing-demanded")


def was_there(broker: Any) -> bool:
    """Whether a client has been at the fake, or at the byte proxy in front of it.

    A connection over ZeroMQ has no beginning that could be seen: there it takes a frame.
    """
    proxy = proxy_of(broker)
    if proxy is not None and any(r.kind == "accepted" for r in proxy.journal.records()):
        return True
    streams = broker.engine.injector.stream
    return any(
        bool(r.tap & (Tap.RECEIVED | Tap.SENT)) or (streams and r.kind == "accepted")
        for r in broker.journal.records()
    )


def unfired(broker: Any) -> list[str]:
    """The faults, those of the proxy too, that never took place."""
    proxy = proxy_of(broker)
    return [*broker.faults.unfired, *(proxy.faults.unfired if proxy is not None else ())]
