"""Ops that meet each other: what comes of them at each other's turns, and what correct clients make of it."""

from __future__ import annotations

import pytest

from conformance.rules import judge
from conformance.run.inprocess import runner
from conformance.run.specs import ConcurrentAction, Spec, from_json, to_json
from conformance.search.systematic.shrink import candidates
from conformance.search.systematic.universe import TURNS, concurrent_actions

CORRECT = [
    ("rabbitmq-stream", "both", 2, "close"),  # a subscription that is being made ends with the client
    ("rabbitmq-stream", "nodes", 2, "cancel"),  # and nobody keeps one that nobody waits for
    ("blazingmq", "queues", 9, "close"),  # a queue that is being closed is closed once
    ("blazingmq", "queues", 9, "twice"),
    ("blazingmq", "configured", 3, "cancel"),  # a reader that nobody waits for is drained, then closed
    ("blazingmq", "several", 12, "cancel"),
    ("pzq", "closing", 3, "cancel"),
    ("pzq", "unwaited", 2, "close"),  # what was only sent has its outcome before the close is done
]


def violated(protocol: str, spec: Spec, mutant: str = "") -> set[str]:
    return {finding.name for finding in judge(runner(protocol, mutant)(spec))}


@pytest.mark.parametrize(("protocol", "base", "op", "what"), CORRECT)
def test_a_correct_client_stands_it_at_every_turn(protocol: str, base: str, op: int, what: str) -> None:
    for turns in TURNS:
        spec = Spec(protocol, base, concurrent=(ConcurrentAction(op, what, turns),))
        assert violated(protocol, spec) == set(), spec


@pytest.mark.parametrize(
    ("protocol", "mutant", "base", "action", "invariant"),
    [
        (
            "blazingmq",
            "says-goodbye-twice",
            "two-sessions",
            ConcurrentAction(12, "twice", 1),
            "uses-what-it-has",
        ),
        (
            "blazingmq",
            "closes-what-is-closed",
            "several",
            ConcurrentAction(12, "twice", 8),
            "uses-what-it-has",
        ),
    ],
)
def test_a_defect_shows_at_one_of_them(
    protocol: str, mutant: str, base: str, action: ConcurrentAction, invariant: str
) -> None:
    assert invariant in violated(protocol, Spec(protocol, base, concurrent=(action,)), mutant)
    assert violated(protocol, Spec(protocol, base), mutant) == set()


def test_a_cut_ends_the_base_and_asks_once_more_behind_the_close() -> None:
    case = runner("pzq")(Spec("pzq", "waited", concurrent=(ConcurrentAction(2, "close", 0),)))
    asked = [done.op for done in case.ops]
    assert asked == ["connect", "publish", "close", "state", "stats", "publish", "stats"]
    assert case.ops[5].result is not None
    assert case.ops[5].result.word == "closed"


def test_an_op_that_is_in_a_hurry_has_less_time_than_its_answer() -> None:
    case = runner("pzq")(Spec("pzq", "waited", concurrent=(ConcurrentAction(2, "hurried"),)))
    first = case.ops[1]
    assert first.timeout_s == 0.1
    assert first.result is not None
    assert first.result.word == "timeout"


def test_which_there_are_for_a_run() -> None:
    found = list(concurrent_actions(runner("pzq")(Spec("pzq", "both"))))
    assert {what for what, _, _ in found} == {"close", "cancel", "twice", "loss", "hurried"}
    assert {op for what, op, _ in found if what == "twice"} == {"pzq.monitor"}  # messages have one body each
    assert len({action for _, _, action in found}) == len(found)


def test_a_spec_keeps_them_and_can_do_without() -> None:
    spec = Spec("pzq", "waited", concurrent=(ConcurrentAction(3, "loss", 4),))
    assert from_json(to_json(spec)) == spec
    assert spec.acts == ["aside-loss"]
    assert "loss at op 3 4 turns later" in str(spec)
    simpler = list(candidates(spec))
    assert Spec("pzq", "waited") in simpler
    assert Spec("pzq", "waited", concurrent=(ConcurrentAction(3, "loss", 2),)) in simpler
