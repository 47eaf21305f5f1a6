"""Rules of messages that come again until they are settled, each with a defect of a client of PZQ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.clients.adapter.messages import Event
from conformance.clients.mutants import matrix
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.pzq.consumer import Consumer, Delivery, Parts
from conformance.clients.reference.registry import definition
from conformance.rules import judge
from conformance.rules.settling import _orders_of
from conformance.run.inprocess import runner
from conformance.run.reported import ReportedEvent
from conformance.run.specs import Injection, Spec
from conformance.run.trace import Position
from conformance.suite.load import all_scenarios

PROTOCOL = "pzq"

#: Invariant, a mutant that violates it, the base, and the fault, if it takes one.
FOUND = [
    ("asks-again", "deadlines-by-wall-clock", "waited", Injection("c1", "out", 1, "lost")),
    ("confirms-by-order", "acknowledges-on-arrival", "consume", None),
    ("confirms-what-was-ordered", "delimiter-in-acks", "by-hand", None),
    ("confirms-what-was-ordered", "acknowledges-in-a-while", "settled-last", None),
    ("damage-is-told", "failures-are-hidden", "failing", None),
    ("delivers-what-came", "callback-error-ends-the-consumer", "failing", None),
    ("delivers-what-came", "expires-early", "in-time", None),
    (
        "delivers-what-came",
        "wrapping-times",
        "in-time",
        Injection("c2", "out", 1, "field", [["timeout"], 18446744073709551615]),
    ),
    ("delivers-what-came", "thousand-at-once", "flood", None),
    ("errors-for-a-reason", "slow-is-lost", "outage", None),
    ("ids-differ", "ids-come-round", "bulk", None),
    ("settled-for-good", "copies-are-news", "expiring", None),
    ("writes-what-was-given", "empty-parts-dropped", "bodies", None),
    ("written-once", "a-pause-doubles-messages", "stood-still", None),
]

#: As in `test_invariants`.
WITHOUT = {"surfaced-in-order": "no mutant changes the order of deliveries"}


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "injection"), FOUND, ids=[f"{row[0]}, {row[1]}" for row in FOUND]
)
def test_a_defect_violates_it_and_the_correct_client_does_not(
    invariant: str, mutant: str, base: str, injection: Injection | None
) -> None:
    spec = Spec(PROTOCOL, base, () if injection is None else (injection,))
    found = {finding.name: finding for finding in judge(runner(PROTOCOL, mutant)(spec))}
    assert invariant in found and "b'" not in found[invariant].detail
    assert judge(runner(PROTOCOL)(spec)) == []


def test_a_ref_names_what_came_last_by_it() -> None:
    """Adapters may count refs in a subscription, and so begin anew with each."""

    def came(row: int, key: str) -> ReportedEvent:
        fields = {"sub": "c1", "ref": "c1#1", "position": key, "meta": {}}
        heard = ReportedEvent(Event(event="message", t=0.0, n=row, fields=fields))
        heard.at = Position(row, 0, float(row))
        return heard

    def settled(row: int) -> Any:
        args = {"sub": "c1", "ref": "c1#1", "how": "ack"}
        return SimpleNamespace(args=args, begun=Position(row, 0, float(row)), result=SimpleNamespace(ok=True))

    ops = {"settle": [settled(2), settled(4)]}
    messages = [came(1, "first"), came(3, "second")]
    case: Any = SimpleNamespace(done=lambda op: ops.get(op, []), heard=lambda name: messages, shared={})
    assert [order.key for order in _orders_of(case)] == [b"first", b"second"]


class NoStatus(Consumer):
    """Its acknowledgements lack the status, so that they are no frames of PZQ."""

    def acknowledgement(self, delivery: Delivery, positive: bool) -> Parts:
        return (delivery.pzq_id, delivery.key)


def test_what_the_client_writes_is_no_damaged_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    client = adapter_of(definition(PROTOCOL), [NoStatus])
    monkeypatch.setattr(matrix, "reference", lambda protocol: client)
    [item] = [one for one in all_scenarios() if one.key == ("PZQ-2.04", PROTOCOL, "")]
    broken = {finding.name for finding in matrix.run(item, invariants=True).broken}
    assert "wire-legal" in broken
    assert "damage-is-told" not in broken
