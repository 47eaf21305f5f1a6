"""The gate: no invariant is violated by a correct client, whatever is done to its connections."""

from __future__ import annotations

import itertools

import pytest

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import ArgumentChange, ConcurrentAction, Injection, Spec
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.sweep import Sweep
from conformance.search.systematic.universe import universe

NO_LIMIT_S = 3600.0  #: the number of specs is the limit, however busy the machine
SPECS = {"rabbitmq-stream": 200, "pzq": 200, "narconi": 100, "blazingmq": 200}
MORE_SPECS = {"rabbitmq-stream": 600, "pzq": 600, "narconi": 300, "blazingmq": 600}


@pytest.mark.parametrize(
    ("protocol", "specs"),
    [*SPECS.items(), *(pytest.param(*row, marks=pytest.mark.full) for row in MORE_SPECS.items())],
)
def test_the_correct_client_violates_nothing(protocol: str, specs: int) -> None:
    sweep = Sweep(runner(protocol))
    sweep.go(itertools.islice(DrawOrder(universe(protocol)), specs), NO_LIMIT_S)
    found = [
        f"{failure.spec}: {finding}" for failure in sweep.failures.values() for finding in failure.findings
    ]
    assert not found, "\n".join(found)
    assert sweep.runs == specs


@pytest.mark.parametrize(
    ("mutant", "invariant"),
    [("confirm-by-position", "ack-needs-confirm")],
)
def test_a_defect_is_found_by_the_rule_that_it_breaks(mutant: str, invariant: str) -> None:
    protocol = "rabbitmq-stream"
    sweep = Sweep(runner(protocol, mutant))
    sweep.go(
        DrawOrder(universe(protocol)),
        NO_LIMIT_S,
        until=lambda findings: invariant in [one.name for one in findings],
    )
    assert invariant in {name for name, _ in sweep.failures}


@pytest.mark.parametrize(
    "spec",
    [
        Spec("rabbitmq-stream", "closing", (
         Injection("c1", "out", 12, "unasked", ["ConsumerUpdate", None]),)),
        Spec("rabbitmq-stream", "crowd", changes=(ArgumentChange(5, "name", ""),)),
        Spec("rabbitmq-stream", "single-active", ops=2, concurrent=(ConcurrentAction(2, "close", 2),)),
        Spec("rabbitmq-stream", "closing", ops=6, concurrent=(ConcurrentAction(6, "twice", 2),)),
        Spec("moleculer", "balanced-again", changes=(ArgumentChange(3, "group", "x" * 4096),)),
        Spec("narconi", "drained", (Injection("c1", "out", 6, "lost", None),)),
        Spec(
            "rabbitmq-stream", "two-sessions",
            (Injection("c2", "out", 7, "field", [["streams", 0, 1], {"add": 5}]),),
        ),
        Spec(
            "rabbitmq-stream", "other-host",
            (Injection("c2", "out", 7, "stays", ["SubscribeResponse", 2, "fin", None]),),
        ),
    ],
    ids=["asked behind its goodbye", "an empty name", "made active", "an op amid the close",
         "a group longer than a line of NATS", "a drain whose pong is lost", "told another",
         "two subscriptions that come back at once"],
)  # fmt: skip
def test_what_the_whole_sweep_has_shown(spec: Spec) -> None:
    assert judge(runner(spec.protocol)(spec)) == []
