"""How runs are judged: one finding per rule, and a rule that breaks is no verdict on the client."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import pytest

from conformance.clients.adapter.contract import Contract
from conformance.rules import findings, judge
from conformance.rules.registry import INVARIANTS, Invariant, May, Violation
from conformance.run.case import Case
from conformance.run.facts import Should
from conformance.run.inprocess import runner
from conformance.run.specs import Spec
from conformance.run.trace import START

SPEC = Spec("rabbitmq-stream", "publish")


@pytest.fixture
def case() -> Case:
    return runner("rabbitmq-stream")(SPEC)


def broken(case: Case) -> Iterator[Violation]:
    """Breaks."""
    raise KeyError("no such thing")
    yield


def often(case: Case) -> Iterator[Violation]:
    """Is violated twice."""
    yield "once", START, None
    yield "twice"


def test_a_rule_that_breaks_is_told_as_such(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INVARIANTS, "broken", Invariant("broken", "Breaks.", broken))
    [finding] = judge(case)
    assert finding.name == "harness"
    assert "broken" in finding.detail


def test_the_first_finding_of_a_rule_is_enough(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INVARIANTS, "often", Invariant("often", "Is violated twice.", often))
    [finding] = judge(case)
    assert (finding.detail, finding.rows) == ("once", (START.row,))


def another(case: Case) -> Iterator[Violation]:
    """Looks at something else."""
    yield "elsewhere", START
    yield "again", START


def lightly(case: Case) -> Iterator[Violation]:
    """Looks at what harms nobody."""
    yield Should("needless"), START


def test_what_several_checks_of_a_rule_say_is_one_finding(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, check in enumerate((lightly, often, another, often, lightly)):
        monkeypatch.setitem(INVARIANTS, f"often {number}", Invariant("often", "Is violated.", check))
    [finding] = judge(case)
    assert (finding.detail, finding.besides, finding.level) == ("once", ("elsewhere",), "MUST")
    assert str(finding) == "often: once; besides, elsewhere"


def perhaps(case: Case) -> Iterator[Violation]:
    """A contract may allow it."""
    yield May("waits", "it waited"), START


def at_last(case: Case) -> Iterator[Violation]:
    """A contract may allow some of it."""
    yield (May("waits", "it waited"),)
    yield ("it slept",)


def with_contract(case: Case, **words: bool) -> Case:
    assert case.contract.hello is not None
    case.contract = Contract(msgspec.structs.replace(case.contract.hello, contract=words))
    return case


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ({"waits": True}, "waits"),
        ({"waits": False}, ""),
        ({}, "waits"),
        ({"others": False}, ""),
        ({"others": False, "waits": True}, "waits"),
    ],
)
def test_a_contract_allows_what_it_does_not_deny(
    case: Case, words: dict[str, bool], allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(INVARIANTS, "perhaps", Invariant("perhaps", "May be.", perhaps))
    [finding] = findings(with_contract(case, **words))
    assert (finding.name, finding.allowed, finding.rows) == ("perhaps", allowed, (START.row,))
    assert [each.name for each in judge(case)] == ([] if allowed else ["perhaps"])


def test_what_is_allowed_hides_nothing_that_is_not(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INVARIANTS, "at last", Invariant("at last", "Some of it.", at_last))
    [finding] = judge(with_contract(case, waits=True))
    assert finding.detail == "it slept"


def harmless_first(case: Case) -> Iterator[Violation]:
    """Something that nobody needs is missing, then something that is needed."""
    yield Should("hostname of INFO is missing"), START
    yield Should("ipList of INFO is missing"), START
    yield "instanceID of INFO is missing", START


def test_what_harms_nobody_is_a_should_and_hides_no_must(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INVARIANTS, "legal", Invariant("legal", "Legal.", harmless_first))
    [finding] = judge(case)
    assert (finding.detail, finding.level) == ("instanceID of INFO is missing", "MUST")
    monkeypatch.setitem(
        INVARIANTS, "legal", Invariant("legal", "Legal.", lambda case: islice(harmless_first(case), 2))
    )
    [finding] = judge(case)
    assert (finding.detail, finding.level) == ("hostname of INFO is missing", "SHOULD")


def test_a_finding_has_the_level_of_its_rule(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INVARIANTS, "often", Invariant("often", "Is violated twice.", often, "SHOULD"))
    [finding] = judge(case)
    assert (finding.detail, finding.level) == ("once", "SHOULD")


def test_a_capability_that_is_missing_allows_too(case: Case) -> None:
    assert case.contract.hello is not None
    assert case.contract.hello.can("ack_timeout")
    assert not case.contract.allows("ack_timeout")
    case.contract = Contract(msgspec.structs.replace(case.contract.hello, caps={}))
    assert case.contract.allows("ack_timeout")
    assert not case.contract.allows("lazy_subscribe")


def test_of_a_client_that_is_gone_nothing_else_is_said(case: Case) -> None:
    case.error = "RuntimeError: it is over"
    case.complaints = "something else"
    assert [finding.name for finding in judge(case)] == ["lives"]


def test_what_the_harness_did_is_no_finding_about_the_client(case: Case) -> None:
    case.harness = "the fake: broken"
    case.error = "and so is the rest"
    assert [finding.name for finding in judge(case)] == ["harness"]
