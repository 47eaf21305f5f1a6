"""How runs are judged: one finding per rule, and a rule that breaks is no verdict on the client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.invariants import judge
from conformance.invariants.registry import INVARIANTS, Invariant, Violation
from conformance.sweep.case import Case
from conformance.sweep.run import runner
from conformance.sweep.specs import Spec
from conformance.sweep.tape import START

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


def test_of_a_client_that_is_gone_nothing_else_is_said(case: Case) -> None:
    case.error = "RuntimeError: it is over"
    case.complaints = "something else"
    assert [finding.name for finding in judge(case)] == ["lives"]


def test_what_the_harness_did_is_no_finding_about_the_client(case: Case) -> None:
    case.harness = "the fake: broken"
    case.error = "and so is the rest"
    assert [finding.name for finding in judge(case)] == ["harness"]
