"""Every invariant finds a defect, and says nothing of the correct client in the same run."""

from __future__ import annotations

import re

import pytest

from conformance.rules import INVARIANTS, judge
from conformance.run.inprocess import runner
from conformance.run.specs import Injection, Spec
from tests.conformance.rules import test_settling

PROTOCOL = "rabbitmq-stream"
#: What no maintainer of a client in another language should have to read.
PYTHON = re.compile(r"\bb'|\b(None|UNSET|True|False|Counter|frozenset)\b|[(\[{]'")

#: Invariant, a mutant that violates it, the base, and the fault, if it takes one.
FOUND = [
    ("ack-needs-confirm", "confirm-by-position", "given-up", None),
    ("ack-needs-confirm", "publishers-of-any-connection", "at-two-nodes", None),
    ("acked-not-stored", "sequence-never-asked", "names", None),
    ("answer-counts", "one-confirm-per-frame", "publish", None),
    ("answer-counts", "version-expected", "publish",
     Injection("c1", "out", 1, "entry", [["properties", "version"], "absent"])),
    ("answer-counts", "first-offset-is-none", "zeros", None),
    ("answer-value", "offsets-are-floats", "large-answers", None),
    ("answers-questions", "challenge-ignored", "challenged", None),
    ("answers-questions", "consumer-update-after-the-handler", "handed-over", None),
    ("answers-questions", "consumer-update-id-made-up", "single-active", None),
    ("asks-once-it-can", "writes-into-the-void", "both", Injection("c2", "out", 11, "rst")),
    ("answers-questions", "server-close-unanswered", "publish",
     Injection("c1", "out", 9, "goodbye", "stays")),
    ("asks-what-was-ordered", "timestamp-in-seconds", "positions", None),
    ("asks-what-was-ordered", "arguments-of-32-bits", "created-with", None),
    ("asks-what-was-ordered", "arguments-add-up", "created-with", None),
    ("asks-what-was-ordered", "asks-as-the-last-one-did", "each-its-own", None),
    ("asks-what-was-ordered", "super-streams-without-arguments", "made-super-streams", None),
    ("answer-value", "numbers-of-the-first-time", "measured", None),
    ("asks-once-it-can", "room-for-who-has-left", "crowded-window", None),
    ("asks-once-it-can", "window-never-frees", "windows", None),
    ("beats", "beats-by-its-own-value", "beats-2-60-idle", None),
    ("beats", "beats-only-in-silence", "beats-2-2-fed", None),
    ("close-ends", "surfaces-after-close", "closing", None),
    ("close-is-prompt", "close-empties-the-queue", "closing", None),
    ("comes-back", "failed-addresses-are-dropped", "servers-in-turn-2", None),
    ("comes-back", "goes-back-to-its-first-server", "servers-in-turn-3", None),
    ("comes-back", "leaderless-stream-crashes", "nodes", None),
    ("comes-back", "one-user-moves-with-its-stream", "together", None),
    ("credit-overrun", "credit-by-two", "chattering-walk-7", None),
    ("credit-leak", "credit-never-returned", "both", None),
    ("credit-leak", "own-credit-is-one", "own-credit", None),
    ("credit-overrun", "credit-by-two", "own-credit", None),
    ("damage-is-told", "crc-mismatch-in-silence", "consume",
     Injection("c1", "out", 10, "field", [["chunk", "crc"], 0])),
    ("delivers-what-came", "unknown-compression-is-none", "foreign-batches", None),
    ("delivers-what-came", "newest-of-a-stream-alone", "of-one-stream", None),
    ("delivers-what-came", "whole-batch-at-the-start", "begun-inside", None),
    ("delivers-what-came", "surfaces-cut-frames", "consume", Injection("c1", "out", 9, "cut", 83)),
    ("delivers-what-came", "whole-first-chunk", "positions", None),
    ("failed-yet-stored", "late-confirm-means-refused", "beats-61-59-busy", None),
    ("fails-fast", "loss-unnoticed", "plain", None),
    ("fails-for-a-reason", "first-replica-only", "one-node-away", None),
    ("fails-for-a-reason", "as-long-as-the-first", "shared-declaration", None),
    ("fails-for-a-reason", "stray-answer-ends-a-request", "cancelled", None),
    ("frame-max", "oversize-is-sent", "limits", None),
    ("frame-max", "batches-by-letters", "longer-in-bytes", None),
    ("garbage-ends", "empty-frame-stops-the-reader", "publish",
     Injection("c1", "out", 12, "unasked", ["nothing", "noise"])),
    ("goes-no-further", "unknown-stream-code-is-fine", "publish",
     Injection("c1", "out", 7, "field", [["streams", 0, 1], 99])),
    ("gone-for-a-reason", "moved-stream-is-closed", "nodes", None),
    ("handshake-first", "heartbeat-before-login", "ask", None),
    ("introduces-itself-as-ordered", "default-user-after-a-loss", "own-login", None),
    ("introduces-itself-as-ordered", "virtual-host-of-the-first-connection", "other-host", None),
    ("keeps-secrets", "password-in-errors", "own-login", None),
    ("limit-exact", "zero-frame-max-is-small", "unlimited-0-None", None),
    ("loss-ends-close", "loss-unnoticed", "outage", None),
    ("loss-ends-requests", "handshake-refusal-waits", "turned-away", None),
    ("nack-needs-error", "loss-means-refused", "in-the-turn", None),
    ("no-growth", "reconnect-leaks-a-task", "rounds", None),
    ("no-storm", "login-repeated", "turned-away", None),
    ("no-storm", "zero-heartbeat-storm", "beats-0-0-idle", None),
    ("no-unhandled", "lost-tasks", "both", None),
    ("ok-needs-answer", "partitions-are-asked-for-once", "asked-of-super-streams", None),
    ("ok-needs-answer", "loss-answers-requests", "in-the-turn", None),
    ("one-loss-event", "loss-unnoticed", "plain", None),
    ("no-delivery-behind-the-end", "unsubscribes-at-once", "replaced", None),
    ("one-producer-each", "declares-for-each", "shared-declaration", None),
    ("one-producer-each", "recovery-and-publish-declare", "both", None),
    ("one-subscription-each", "subscribes-twice", "both", None),
    ("ops-inside-end", "own-end-waits-for-itself", "inside", None),
    ("op-ends", "loss-leaves-requests-open", "in-the-turn", None),
    ("pauses-between-attempts", "refused-subscribe-repeated-at-once", "several",
     Injection("c1", "out", 1, "stays-refused", ["SubscribeResponse", 1, "contradict", ["instead", 6]])),
    ("pending-is-true", "timed-out-requests-stay", "ask", Injection("c1", "out", 9, "lost")),
    ("refusal-ends", "handshake-codes-unread", "publish",
     Injection("c1", "out", 1, "contradict", ["instead", None])),
    ("refused-needs-answer", "credit-response-ends-a-request", "chattering-walk-0", None),
    ("silence-noticed", "silence-unnoticed", "beats-2-2-deaf", None),
    ("state-agrees", "closed-sockets-stay", "plain", None),
    ("stored-twice", "resends-at-once", "stalled", None),
    ("stores-by-order", "offset-stored-at-the-end", "consume", None),
    ("stores-by-order", "offsets-are-stored-later", "stored-last", None),
    ("stores-by-order", "tracks-its-start", "tracked", None),
    ("acked-not-stored", "batch-takes-the-last-id", "packed-by-name", None),
    ("unprovoked-end", "frame-max-binds-the-server", "large-chunks", None),
    ("unprovoked-end", "close-without-goodbye", "two-sessions", None),
    ("untouched-works", "correlation-id-never-wraps", "wraps", None),
    ("untouched-works", "last-subscription-ends-the-connection", "one-link-for-both", None),
    ("ok-needs-answer", "flush-waits-for-one", "flushed", None),
    ("writes-what-was-given", "id-zero-is-none", "own-ids", None),
    ("wire-legal", "length-in-characters", "names", None),
    ("writes-what-was-given", "partitions-of-the-first", "two-super-streams", None),
    ("writes-what-was-given", "one-route-after-a-loss", "routed", None),
    ("written-in-order", "publishes-overtake", "newcomers", None),
    ("written-once", "bodies-end-at-64k", "bodies", None),
    ("refused-needs-answer", "deletes-are-refused", "publish-named", None),
    ("close-ends", "cancelled-connect-goes-on", "connect-cancelled", None),
]  # fmt: skip

#: Those of queues: protocol, invariant, mutant, base.
OF_QUEUES = [
    ("narconi", "op-ends", "ends-take-turns", "close-during-drain"),
    ("nats", "op-ends", "ends-take-turns", "close-during-drain"),
    ("redis", "op-ends", "ends-take-turns", "close-during-unsubscribe"),
    ("mqtt", "op-ends", "ends-take-turns", "close-during-unsubscribe"),
    ("rabbitmq-stream", "op-ends", "ends-take-turns", "close-during-unsubscribe"),
    ("blazingmq", "op-ends", "ends-take-turns", "close-during-close-queue"),
    ("narconi", "asks-what-was-ordered", "limits-only-with-acknowledgements", "consumed-with"),
    ("nats", "asks-what-was-ordered", "limited-members-are-alone", "consumed-with"),
    ("blazingmq", "asks-what-was-ordered", "limits-of-bytes-have-no-priority", "opened-with"),
    ("rabbitmq-stream", "delivers-what-came", "named-consumers-have-no-filter", "consumed-with"),
    ("mqtt", "writes-what-was-given", "exactly-once-is-not-kept", "published-with"),
    ("moleculer", "surfaces-what-came", "broadcasts-are-for-all-groups", "heard-with"),
    ("moleculer", "surfaces-what-came", "first-failure-ends-an-event", "one-raises"),
    ("mqtt", "delivers-what-came", "first-failure-ends-a-message", "one-raises"),
    ("narconi", "asks-once-it-can", "dead-connection-is-kept", "idle"),
    ("narconi", "callbacks-apart", "one-callback-at-a-time", "one-is-slow"),
    ("narconi", "comes-back", "encoded-bodies-are-too-large", "largest"),
    ("narconi", "confirms-by-order", "acks-on-arrival", "settle"),
    ("narconi", "confirms-by-order", "acknowledges-on-the-newest-connection", "settled-across"),
    ("narconi", "drains-before-the-end", "waits-for-those-below", "drained-of-many"),
    ("narconi", "untouched-works", "ids-are-compared-as-text", "settled-past-nine"),
    ("narconi", "gone-is-reported", "gone-queue-is-tried-for-ever", "deleted"),
    ("narconi", "uses-what-it-has", "settles-only-the-last", "settled-below"),
    ("rabbitmq-stream", "gone-is-reported", "subscription-ends-quietly", "deleted"),
    ("narconi", "both-sides-end", "end-unanswered", "for-once"),
    ("narconi", "no-growth", "each-request-keeps-a-connection", "at-rest"),
    ("narconi", "not-in-step", "reconnects-in-step", "herd"),
    ("moleculer", "answers-what-was-asked", "names-end-at-the-first-dot", "dotted"),
    ("moleculer", "hears-what-is-for-it", "balanced-topics-are-lost", "balanced-again"),
    ("moleculer", "hears-nothing-else", "leaves-one-topic-each-time", "taken-back"),
    ("moleculer", "limit-exact", "events-of-any-size", "longer-in-bytes"),
    ("moleculer", "comes-back", "failed-servers-are-forgotten", "servers-in-turn-2"),
    ("moleculer", "comes-back", "stays-with-its-server", "servers-in-turn-3"),
    ("blazingmq", "limit-exact", "names-at-three-bytes-a-letter", "longer-in-bytes"),
    ("blazingmq", "no-delivery-behind-the-end", "callback-of-the-batch", "replaced"),
    ("narconi", "one-producer-each", "a-connection-for-each-that-waits", "publish"),
    ("narconi", "one-subscription-each", "ended-subscriptions-stay-connected", "at-rest"),
    ("narconi", "wire-legal", "short-lengths-by-letters", "longer-in-bytes"),
    ("pzq", "comes-back", "others-are-lost-for-good", "instances-in-turn"),
    ("pzq", "no-delivery-behind-the-end", "ended-consumers-go-on", "replaced"),
    ("pzq", "written-once", "once-more-after-the-deadline", "hasty"),
    ("pzq", "answer-value", "counters-of-32-bits", "large-counters-32"),
    ("pzq", "answer-value", "counters-are-floats", "large-counters-53"),
    ("pzq", "answer-value", "counters-of-63-bits", "large-counters-64"),
    ("pzq", "ok-needs-answer", "late-answers-are-for-the-next", "answered-late"),
    ("pzq", "written-once", "answers-are-found-as-text", "alike-ids-bytes"),
    ("pzq", "written-once", "ids-end-at-a-nul", "alike-ids-nul"),
    ("pzq", "delivers-what-came", "known-by-text", "alike-keys"),
    ("pzq", "delivers-what-came", "one-end-is-the-end-of-all", "one-ends"),
    ("narconi", "delivers-what-came", "one-end-is-the-end-of-all", "one-ends"),
    ("narconi", "delivers-what-came", "newest-of-a-queue-alone", "one-ends"),
    ("narconi", "writes-what-was-given", "metadata-as-long-as-their-letters", "messages"),
    ("narconi", "writes-what-was-given", "odd-marks-in-headers", "posts"),
    ("narconi", "wire-legal", "odd-marks-in-headers", "posts"),
    ("narconi", "close-ends", "unanswered-close-fails", "close-unanswered"),
    ("narconi", "wire-legal", "empty-posts-without-a-length", "posts"),
    ("narconi", "refused-needs-answer", "forbidden-means-not-let-in", "refused-for-reasons"),
    ("moleculer", "streams-are-whole", "cut-uploads-end-well", "called-off"),
    ("moleculer", "streams-are-whole", "failed-sources-end-well", "sources-fail"),
    ("moleculer", "answers-what-was-asked", "failed-answers-end-well", "answers-fail"),
    ("moleculer", "close-ends", "close-fails-when-lost", "lost-in-close"),
    ("moleculer", "sends-what-it-was-given", "falsy-params-are-none", "values"),
    ("moleculer", "sends-what-it-was-given", "broadcasts-forget-their-groups", "emitting"),
    ("moleculer", "knows-who-is-there", "looks-after-the-last-heard", "one-falls-silent"),
    ("moleculer", "answers-what-was-asked", "broken-uploads-are-whole", "sent-to"),
    ("moleculer", "answers-what-was-asked", "order-of-arrival", "chunks"),
    ("moleculer", "answers-what-was-asked", "streams-have-no-meta", "uploads"),
    ("moleculer", "comes-back", "channels-are-latin", "over-redis-in-letters"),
    ("moleculer", "wire-legal", "topics-of-several-words", "torn-topics"),
    ("moleculer", "refused-needs-answer", "errors-are-called-by-their-names", "worded-errors"),
    ("moleculer", "refused-needs-answer", "names-are-types", "worded-errors"),
    ("moleculer", "untouched-works", "services-have-both", "sparse-services"),
    ("moleculer", "tells-its-deadline", "no-time-out-is-the-default", "own-limits"),
    ("moleculer", "tells-what-it-offers", "announces-while-it-stops", "late-service"),
    ("moleculer", "not-in-step", "reconnects-in-step", "herd"),
    ("moleculer", "answers-what-was-asked", "falsy-error-data-are-lost", "thrown"),
    ("moleculer", "close-ends", "pings-outlive-the-node", "aborted"),
    ("moleculer", "ops-inside-end", "unserve-waits-for-listeners", "inside"),
    ("pzq", "op-ends", "no-time-is-no-limit", "hasty"),
    ("pzq", "ops-inside-end", "own-end-waits-for-itself", "inside"),
    ("narconi", "introduces-itself-as-ordered", "default-project-after-a-loss", "other-project"),
    ("narconi", "lives", "a-pause-ends-the-process", "stopped"),
    ("narconi", "confirms-what-was-ordered", "ack-to-means-all", "settle"),
    ("narconi", "confirms-what-was-ordered", "acknowledges-in-a-while", "settled-last"),
    ("narconi", "writes-what-was-given", "metadata-in-binary", "publish"),
    ("narconi", "writes-what-was-given", "names-without-capitals", "near-names"),
    ("narconi", "written-in-order", "newcomers-overtake", "newcomers"),
    ("narconi", "loss-ends-close", "drains-what-is-lost", "drained-and-lost"),
    ("narconi", "uses-what-it-has", "settles-again-with-others", "settle"),
    ("moleculer", "close-ends", "unjoined-connection-stays", "connect-cancelled"),
    ("blazingmq", "no-storm", "pauses-never-grow", "ends-at-once"),
    ("moleculer", "no-storm", "pauses-never-grow", "ends-at-once"),
    ("mqtt", "no-storm", "handshake-is-success", "ends-at-once"),
    ("narconi", "no-storm", "handshake-is-success", "ends-at-once"),
    ("nats", "no-storm", "handshake-is-success", "ends-at-once"),
    ("rabbitmq-stream", "no-storm", "handshake-is-success", "ends-at-once"),
    ("redis", "no-storm", "handshake-is-success", "ends-at-once"),
    ("rabbitmq-stream", "repeats-come-first", "newcomers-overtake-repeats", "overtaken"),
    ("rabbitmq-stream", "repeats-come-first", "newest-is-repeated-first", "overtaken-batches"),
    ("rabbitmq-stream", "repeats-the-same", "repeats-are-not-packed", "overtaken-batches"),
    ("mqtt", "repeats-come-first", "newest-is-sent-again-first", "overtaken"),
    ("mqtt", "repeats-the-same", "copies-are-short", "overtaken"),
    ("mqtt", "repeats-the-same", "copies-are-not-retained", "overtaken"),
]

#: The same of queues, which logs have not.
FOUND_OF_QUEUES = [
    ("answer-counts", "unknown-ack-ends-its-event", "batched", None),
    ("asks-what-was-ordered", "priorities-begin-at-zero", "reordered", None),
    ("comes-back", "refusal-ends-the-restore", "refused-again", None),
    ("confirms-by-order", "confirms-thrice", "late-callback", None),
    ("confirms-what-was-ordered", "confirms-together", "settled-last", None),
    ("confirms-what-was-ordered", "loses-confirms-in-a-burst", "late-callback", None),
    ("delivers-what-came", "first-message-of-an-event", "consume", None),
    ("delivers-what-came", "without-a-callback-is-dropped", "resubscribed", None),
    ("delivers-what-came", "unreadable-ends-its-event", "partly-readable", None),
    ("id-reuse", "posts-share-a-correlation-id", "wraps", None),
    ("pauses-begin-anew", "pauses-never-shrink", "rounds", None),
    ("op-ends", "each-step-has-all-the-time", "late-steps", None),
    ("uses-what-it-has", "closes-without-draining", "configured", None),
    ("uses-what-it-has", "posts-before-the-queue-is-open", "early-posts", None),
    ("waits-for-its-answers", "hangs-up-before-the-answer", "two-sessions",
     Injection("c2", "out", 8, "latency", 3.0)),
    ("wire-legal", "another-checksum", "publish", None),
    ("writes-what-was-given", "bodies-are-text", "bodies", None),
    ("fails-for-a-reason", "no-connection-is-a-mistake", "plain", None),
    ("no-unhandled", "fails-without-a-choice", "odd-control", None),
    ("uses-what-it-has", "confirms-for-closed-queues", "settled-late", None),
    ("uses-what-it-has", "close-closes-what-is-closed", "closed-from-both-ends", None),
    ("uses-what-it-has", "configures-writers", "odd", None),
    ("untouched-works", "half-open-counts-as-open", "half-open", None),
]  # fmt: skip
ELSEWHERE = "this protocol has nothing of the kind; tests/conformance/search/systematic/test_moleculer.py"

#: Those that no mutant of this client violates alone or at a known place; sweeps may.
WITHOUT = {
    "asks-what-it-does-not-know": ELSEWHERE,
    "streams-wait": ELSEWHERE,
    "silent-behind-its-goodbye": ELSEWHERE,
    "failures-are-told": ELSEWHERE,
    "greets-on-every-connection": ELSEWHERE,
    "heeds-goodbyes": "a client made for it; tests/conformance/search/systematic/test_narconi.py",
    "spreads-its-questions": ELSEWHERE,
    "complaints-are-told": "tests/conformance/search/systematic/test_narconi.py",
    "definite-for-a-reason": "tests/conformance/search/systematic/test_narconi.py",
    "adapter-protocol": "no mutant of the client is a mutant of its adapter",
    "live-id": "needs a place of its own",
    "one-outcome": "a client made for it; test_outcomes.py",
}


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "injection"), FOUND, ids=[f"{row[0]}, {row[2]}" for row in FOUND]
)
def test_a_defect_violates_it_and_the_correct_client_does_not(
    invariant: str, mutant: str, base: str, injection: Injection | None
) -> None:
    check(PROTOCOL, invariant, mutant, Spec(PROTOCOL, base, () if injection is None else (injection,)))


@pytest.mark.parametrize(
    ("invariant", "mutant", "base", "injection"),
    FOUND_OF_QUEUES,
    ids=[f"{row[0]}, {row[2]}" for row in FOUND_OF_QUEUES],
)
def test_a_defect_of_a_client_of_queues(
    invariant: str, mutant: str, base: str, injection: Injection | None
) -> None:
    check("blazingmq", invariant, mutant, Spec("blazingmq", base, () if injection is None else (injection,)))


def check(protocol: str, invariant: str, mutant: str, spec: Spec) -> None:
    """The mutant violates the invariant, and the correct client none."""
    found = {finding.name: finding for finding in judge(runner(protocol, mutant)(spec))}
    assert invariant in found
    assert found[invariant].detail
    assert invariant == "no-unhandled" or not PYTHON.search(
        found[invariant].detail
    )  # which quotes the runtime
    assert judge(runner(protocol)(spec)) == []


@pytest.mark.parametrize(("protocol", "invariant", "mutant", "base"), OF_QUEUES)
def test_a_defect_with_queues_violates_it(protocol: str, invariant: str, mutant: str, base: str) -> None:
    spec = Spec(protocol, base)
    check(protocol, invariant, mutant, spec)


def test_the_list_is_complete() -> None:
    names = {each.name for each in INVARIANTS.values()}
    settling = {row[0] for row in test_settling.FOUND} | set(test_settling.WITHOUT)
    found = {row[0] for row in (*FOUND, *FOUND_OF_QUEUES)} | {row[1] for row in OF_QUEUES}
    assert found | set(WITHOUT) | settling == names
    assert not found & set(WITHOUT)


def test_every_rule_stands_in_words() -> None:
    for each in INVARIANTS.values():
        assert each.about.endswith("."), each.name
