"""A pass is earned: the client was there, the faults took place, something was demanded and met, and what the
client calls acknowledged was confirmed.

One rule for all scenarios, so that none has to remember it. What a scenario need not earn it says itself,
with the reason: ``@scenario(..., unfired=...)`` and ``unconnected=``, or ``expect.may_not_fire(...)``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from conformance.suite.contract import BY_HAND
from conformance.suite.evidence import proxy_of
from conformance.suite.expect import Expect, Inconclusive, Violated
from conformance.suite.scenario import Scenario
from fakebrokers.core.frames import Role
from fakebrokers.journal import Tap
from fakebrokers.journal.record import Meaning, State, meaning_of


def demand_earned(scenario: Scenario, broker: Any, expect: Expect, acked: int) -> None:
    """Raise `Inconclusive` for a script that ended well without having tried the client.

    Args:
        broker: The fake, perhaps stopped; against a real broker nothing of it can be seen.
        acked: How many messages the client calls acknowledged.

    Raises:
        Violated: Fewer were confirmed.
    """
    if not expect.wire_visible or not hasattr(broker, "journal"):
        return
    if not scenario.unconnected and not was_there(broker):
        raise Inconclusive("no connection ever came from the client", id="no-connection")
    if not scenario.unconnected:
        demand_confirmed(broker, acked)
    if not scenario.unfired:
        for name in unfired(broker):
            if not any(fnmatchcase(name, excused) for excused in expect.unfired):
                near = closest(broker, name)
                text = f"the fault {name!r} never took place{f'; {near}' if near else ''}"
                raise Inconclusive(text, id="fault-never-fired")
    if not expect.met and not expect.tolerated:
        raise Inconclusive("the script demanded nothing", id="nothing-demanded")


def was_there(broker: Any) -> bool:
    """Whether a client has been at the fake, or at the byte proxy in front of it.

    A connection over ZeroMQ has no beginning that could be seen: there it takes a frame.
    """
    proxy = proxy_of(broker)
    if proxy is not None and any(r.kind == State.ACCEPTED for r in proxy.journal.records()):
        return True
    streams = all(wire.stream for wire in broker.protocol.wires)
    return any(
        bool(r.tap & (Tap.RECEIVED | Tap.SENT)) or (streams and r.kind == State.ACCEPTED)
        for r in broker.journal.records()
    )


def demand_confirmed(broker: Any, acked: int) -> None:
    """Raise `Violated` if the client calls more acknowledged than the wire can have carried it.

    Not where the protocol has no confirms, or some of it is in no journal, or was said by hand as something
    that may be a confirm in pieces.
    """
    published = confirmed = 0
    if not broker.protocol.confirms:
        return
    for record in broker.journal.records():
        items = max(1, len(record.keys))
        in_pieces = record.fault == BY_HAND and record.role in (Role.DATA, Role.EVENT, Role.MALFORMED)
        unseen = meaning_of(record.kind) & Meaning.ELSEWHERE or record.kind == State.BYTES
        if unseen or in_pieces or broker.journal.dropped:
            return
        if record.role == Role.PUBLISH and record.tap & Tap.RECEIVED:
            published += items
        elif record.role == Role.CONFIRM and record.tap & Tap.SENT:
            confirmed += items
    # where one confirm is for a batch, more messages are acked than were published one by one
    if (min(acked, published) if confirmed else acked) > confirmed:
        raise Violated(
            "what the client calls acked was confirmed on the wire",
            f"{acked} acked, {confirmed} confirmed",
            id="acked-is-confirmed",
        )


def unfired(broker: Any) -> list[str]:
    """The faults, those of the proxy too, that never took place."""
    proxy = proxy_of(broker)
    return [*broker.faults.unfired, *(proxy.faults.unfired if proxy is not None else ())]


def closest(broker: Any, name: str) -> str:
    """What came closest to a fault that never took place; "" if nothing did, or it is the proxy's."""
    return broker.faults.near_miss(name) if name in broker.faults.unfired else ""
