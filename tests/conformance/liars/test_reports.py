"""Rules about what the application can observe: each lie of an adapter is found, or listed as none."""

from __future__ import annotations

import pytest

from conformance.rules import judge
from conformance.run.inprocess import run, runner
from conformance.run.specs import Spec
from tests.conformance.liars.reports import LIES, lying

#: By protocol: lies, and a base script without any fault that shows them.
FOUND = {
    "rabbitmq-stream": {
        "both": ("a message twice", "a message lost", "messages late", "a loss never"),
        "bulk": ("an outcome twice", "an outcome lost", "outcomes late"),
        "ask": (
            *("answers late", "every error a time-out", "every error a loss", "every error internal"),
            "always open",
        ),
        "cancelled": ("every error a refusal",),
        "in-the-turn": ("a loss twice", "definite turned round"),
        "closing": ("losses late",),
    },
    "blazingmq": {
        "configured": ("a message twice", "a message lost", "messages late"),
        "cancelled": (
            *("answers late", "every error a time-out", "every error a loss", "every error internal"),
            *("every error a refusal", "definite turned round", "always open"),
        ),
        "refused-options": ("a loss twice", "a loss never"),
        "closing": ("losses late",),
    },
    "narconi": {
        "at-once": ("a message twice", "a message lost", "messages late"),
        "unwaited": ("an outcome twice", "an outcome lost", "outcomes late"),
        "ask": ("answers late", "every error a time-out", "every error a loss", "every error internal"),
        "in-the-turn": ("a loss twice", "a loss never", "definite turned round"),
        "outage": ("losses late",),
        "posts": ("every error a refusal",),
    },
    "pzq": {
        "by-hand": ("a message twice", "a message lost", "messages late", "answers late"),
        "unwaited": ("an outcome twice", "an outcome lost", "outcomes late"),
        "closing": (
            *("every error a time-out", "every error internal", "every error a refusal"),
            "definite turned round",
        ),
        "cancelled": ("every error a loss",),
    },
    "moleculer": {
        "events": ("a message twice", "a message lost"),
        "flood": ("messages late",),
        "chunks": ("answers late", "always open"),
        "both": ("a loss twice", "a loss never", "every error a refusal", "definite turned round"),
        "closing": ("losses late",),
        "call": ("every error a time-out", "every error a loss", "every error internal"),
    },
}
CASES = [(p, lie, base) for p, bases in FOUND.items() for base, lies in bases.items() for lie in lies]

#: Lies that are none here.
NONE = {
    "blazingmq": (
        "an outcome twice",
        "an outcome lost",
        "outcomes late",
    ),  # who does not wait asks for no ACK
    "narconi": ("always open",),  # a session is open without a connection
    "pzq": ("a loss twice", "a loss never", "losses late", "always open"),  # libzmq reports no losses
    "moleculer": ("an outcome twice", "an outcome lost", "outcomes late"),  # nothing is confirmed
}


@pytest.mark.parametrize(("protocol", "lie", "base"), CASES, ids=[f"{p}, {lie}" for p, lie, _ in CASES])
def test_a_lie_to_the_application_is_found(protocol: str, lie: str, base: str) -> None:
    assert judge(run(lying(protocol, LIES[lie]), Spec(protocol, base)))


@pytest.mark.parametrize(("protocol", "base"), sorted({(p, base) for p, _, base in CASES}))
def test_who_reports_what_happened_violates_nothing(protocol: str, base: str) -> None:
    assert judge(runner(protocol)(Spec(protocol, base))) == []


def test_each_lie_is_found_or_is_none() -> None:
    for protocol in FOUND:
        found = {lie for p, lie, _ in CASES if p == protocol}
        assert found | set(NONE.get(protocol, ())) == set(LIES)
        assert not found & set(NONE.get(protocol, ()))
