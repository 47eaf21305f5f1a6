"""A rule that finds something for a protocol names it, and what it rests on there: `explain` shows both to
whoever is blamed."""

from __future__ import annotations

import pytest

from conformance.rules import judge
from conformance.rules.sentences import rules
from conformance.run.inprocess import runner
from conformance.run.specs import Spec

FOUND = [
    ("nats", "callbacks", "callbacks-end-it", "delivers-what-came"),
    ("nats", "outage", "asks-before-it-sends", "acked-not-stored"),
    ("nats", "unwaited", "asks-before-it-sends", "written-in-order"),
    ("nats", "waited", "asks-before-it-sends", "ack-needs-confirm"),
    ("nats", "waited", "mute", "answers-questions"),
    ("redis", "bodies", "bodies-are-text", "delivers-what-came"),
    ("redis", "bodies", "many-bytes-are-too-many", "writes-what-was-given"),
    ("redis", "herd", "sessions-share-a-fate", "unprovoked-end"),
    ("redis", "in-the-turn", "last-asked-first-answered", "ack-needs-confirm"),
    ("redis", "refused", "last-asked-first-answered", "nack-needs-error"),
    ("mqtt", "beats-2-idle", "never-asks", "beats"),
    ("mqtt", "bodies", "never-retains", "writes-what-was-given"),
    ("mqtt", "consume", "newest-first", "delivers-what-came"),
    ("mqtt", "consume-lasting", "any-byte-lets-it-in", "state-agrees"),
    ("mqtt", "consume-lasting", "comes-back-twice", "introduces-itself-as-ordered"),
    ("mqtt", "hasty", "impatient", "unprovoked-end"),
    ("mqtt", "inside", "acks-without-confirm", "ack-needs-confirm"),
    ("mqtt", "lasting", "copies-under-new-ids", "written-once"),
    ("mqtt", "outage", "offline-is-acked", "acked-not-stored"),
    ("mqtt", "turned-away", "refusals-let-it-in", "refusal-ends"),
]


@pytest.mark.parametrize(("protocol", "base", "mutant", "rule"), FOUND)
def test_a_rule_names_the_protocols_that_it_judges(protocol: str, base: str, mutant: str, rule: str) -> None:
    found = {finding.name for finding in judge(runner(protocol, mutant)(Spec(protocol, base)))}
    assert rule in found
    for name in found & rules().keys():
        assert protocol in (rules()[name].protocols or [protocol]), name
        assert rules()[name].clauses(protocol), name
