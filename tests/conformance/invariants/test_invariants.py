"""Every invariant finds a defect, and says nothing of the correct client in the same run."""

from __future__ import annotations

import pytest

from conformance.invariants import INVARIANTS, judge
from conformance.sweep.run import runner
from conformance.sweep.specs import Bend, Spec

PROTOCOL = "rabbitmq-stream"

#: Invariant, a mutant that violates it, the base, and the fault, if it takes one.
FOUND = [
    ("ack-needs-confirm", "confirm-by-position", "given-up", None),
    ("acked-not-stored", "sequence-never-asked", "names", None),
    ("answer-counts", "one-confirm-per-frame", "publish", None),
    ("answer-value", "offsets-are-floats", "large-answers", None),
    ("answers-questions", "consumer-update-id-made-up", "single-active", None),
    ("asks-what-was-ordered", "timestamp-in-seconds", "positions", None),
    ("beats", "beats-by-its-own-value", "beats-2-60-idle", None),
    ("close-ends", "surfaces-after-close", "closing", None),
    ("close-is-prompt", "close-empties-the-queue", "closing", None),
    ("comes-back", "leaderless-stream-crashes", "nodes", None),
    ("credit-leak", "credit-never-returned", "both", None),
    ("damage-is-told", "crc-mismatch-in-silence", "consume",
     Bend("c1", "out", 10, "field", [["chunk", "crc"], 0])),
    ("delivers-what-came", "whole-first-chunk", "positions", None),
    ("failed-yet-stored", "late-confirm-means-refused", "beats-61-59-busy", None),
    ("fails-fast", "loss-unnoticed", "plain", None),
    ("fails-for-a-reason", "stray-answer-ends-a-request", "cancelled", None),
    ("frame-max", "oversize-is-sent", "limits", None),
    ("garbage-ends", "empty-frame-stops-the-reader", "publish",
     Bend("c1", "out", 12, "unasked", ["nothing", "noise"])),
    ("goes-no-further", "unknown-stream-code-is-fine", "publish",
     Bend("c1", "out", 7, "field", [["streams", 0, 1], 99])),
    ("gone-for-a-reason", "moved-stream-is-closed", "nodes", None),
    ("handshake-first", "heartbeat-before-login", "ask", None),
    ("limit-exact", "zero-frame-max-is-small", "unlimited-0-None", None),
    ("loss-ends-close", "loss-unnoticed", "outage", None),
    ("loss-ends-requests", "handshake-refusal-waits", "turned-away", None),
    ("nack-needs-error", "loss-means-refused", "in-the-turn", None),
    ("no-growth", "reconnect-leaks-a-task", "rounds", None),
    ("no-storm", "login-repeated", "turned-away", None),
    ("no-unhandled", "lost-tasks", "both", None),
    ("ok-needs-answer", "loss-answers-requests", "in-the-turn", None),
    ("one-loss-event", "loss-unnoticed", "plain", None),
    ("one-subscription-each", "subscribes-twice", "both", None),
    ("op-ends", "loss-leaves-requests-open", "in-the-turn", None),
    ("pending-is-true", "timed-out-requests-stay", "ask", Bend("c1", "out", 9, "lost")),
    ("refusal-ends", "handshake-codes-unread", "publish",
     Bend("c1", "out", 1, "contradict", ["instead", None])),
    ("silence-noticed", "silence-unnoticed", "beats-2-2-deaf", None),
    ("state-agrees", "closed-sockets-stay", "plain", None),
    ("stored-twice", "resends-at-once", "stalled", None),
    ("stores-by-order", "offset-stored-at-the-end", "consume", None),
    ("unprovoked-end", "close-without-goodbye", "two-sessions", None),
    ("untouched-works", "correlation-id-never-wraps", "wraps", None),
    ("wire-legal", "length-in-characters", "names", None),
    ("written-once", "bodies-end-at-64k", "bodies", None),
]  # fmt: skip

ELSEWHERE = "this protocol has nothing of the kind; tests/conformance/sweep/test_moleculer.py"

#: Those that no mutant of this client violates alone or at a known place; sweeps may.
WITHOUT = {
    "answers-what-was-asked": ELSEWHERE,
    "knows-who-is-there": ELSEWHERE,
    "surfaces-what-came": ELSEWHERE,
    "tells-its-deadline": ELSEWHERE,
    "adapter-protocol": "no mutant of the client is a mutant of its adapter",
    "credit-overrun": "needs a place of its own",
    "id-reuse": "needs a place of its own",
    "live-id": "needs a place of its own",
    "lives": "a client in this process that dies takes the run along",
    "no-delivery-behind-the-end": "needs a place of its own",
    "one-outcome": "needs a place of its own",
    "pauses-between-attempts": "needs a place of its own",
    "refused-needs-answer": "needs a place of its own",
    "uses-what-it-has": "needs a place of its own",
}


@pytest.mark.parametrize(("invariant", "mutant", "base", "bend"), FOUND, ids=[row[0] for row in FOUND])
def test_a_defect_violates_it_and_the_correct_client_does_not(
    invariant: str, mutant: str, base: str, bend: Bend | None
) -> None:
    spec = Spec(PROTOCOL, base, () if bend is None else (bend,))
    found = {finding.name: finding for finding in judge(runner(PROTOCOL, mutant)(spec))}
    assert invariant in found
    assert found[invariant].detail
    assert judge(runner(PROTOCOL)(spec)) == []


def test_the_list_is_complete() -> None:
    names = {each.name for each in INVARIANTS.values()}
    assert {row[0] for row in FOUND} | set(WITHOUT) == names
    assert not {row[0] for row in FOUND} & set(WITHOUT)


def test_every_rule_stands_in_words() -> None:
    for each in INVARIANTS.values():
        assert each.about.endswith("."), each.name
