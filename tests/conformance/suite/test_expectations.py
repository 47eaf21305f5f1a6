"""Results against what is known of the client."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.known.defects import Defect, KnownDefects, KnownRow
from conformance.results import RowResult, RuleResult, Verdict
from conformance.rules import Finding
from conformance.suite.expectations import apply, apply_rules, causes, foresee, news
from conformance.suite.judge import Judgement
from conformance.suite.load import all_scenarios

CRITERION = "the-reader-is-alive"
READER = Defect("reader", "the reader dies")


def result(verdict: Verdict) -> RowResult:
    return RowResult("RMQS-6.06", "rabbitmq-stream", "", "MUST", verdict, reason="hang", criterion=CRITERION)


def known(defect: Defect = READER, **more: object) -> KnownDefects:
    about: dict[str, Any] = {
        "protocol": "rabbitmq-stream",
        **({} if "rule" in more else {"id": "RMQS-6.06"}),
        **more,
    }
    return KnownDefects(rows=(KnownRow(defect=defect, **about),))


def test_a_known_failure_is_tagged_and_explained() -> None:
    (marked,) = apply([result(Verdict.FAIL)], known())
    assert (marked.tags, marked.cause) == (("expected",), "the reader dies")
    assert "the reader dies" in marked.reason


@pytest.mark.parametrize("criteria", [(CRITERION,), ("in-time", CRITERION)])
def test_the_criterion_has_to_be_the_known_one(criteria: tuple[str, ...]) -> None:
    assert apply([result(Verdict.FAIL)], known(criteria=criteria))[0].tags == ("expected",)
    (other,) = apply([result(Verdict.FAIL)], known(criteria=("in-time",)))
    assert other.tags == () and other.cause == ""
    assert f"[{CRITERION}; known is only in-time]" in other.reason


def test_rows_of_one_cause_are_one_defect() -> None:
    marked = apply([result(Verdict.FAIL), result(Verdict.FAIL), result(Verdict.PASS)], known())
    assert causes(marked) == ["the reader dies"]


def test_a_pass_that_was_expected_to_fail_is_reported() -> None:
    assert apply([result(Verdict.PASS)], known())[0].tags == ("unexpected pass",)
    assert apply([result(Verdict.PASS)], known(sometimes=True))[0].tags == ()


@pytest.mark.parametrize(
    ("verdict", "criterion", "more", "said"),
    [
        (Verdict.FAIL, CRITERION, {}, True),
        (Verdict.FAIL, "in-time", {"criteria": (CRITERION,)}, None),
        (Verdict.PASS, "", {}, False),
        (Verdict.NON_STRICT, "", {}, False),
        (Verdict.PASS, "", {"sometimes": True}, None),
        (Verdict.FAIL, CRITERION, {"sometimes": True}, True),
        (Verdict.NON_STRICT, "", {"verdict": Verdict.NON_STRICT}, True),
        (Verdict.PASS, "", {"verdict": Verdict.NON_STRICT}, None),
        (Verdict.PASS, "", {"variant": "nats"}, None),
        (Verdict.INCONCLUSIVE, "", {}, None),
    ],
)
def test_what_the_file_foresees(
    verdict: Verdict, criterion: str, more: dict[str, Any], said: bool | None
) -> None:
    file = known(**more)
    [item] = [each for each in all_scenarios() if each.id == "RMQS-6.06"]
    assert foresee(file, Judgement(item, verdict, criterion_id=criterion)) is said


def judgement(verdict: Verdict, *rules: str, criterion: str = "") -> Judgement:
    [item] = [each for each in all_scenarios() if each.id == "RMQS-6.06"]
    return Judgement(
        item, verdict, criterion_id=criterion, findings=tuple(Finding(rule, "?") for rule in rules)
    )


@pytest.mark.parametrize(
    ("entry", "is_known"),
    [
        ({"rule": "beats"}, True),
        ({"rule": "beats", "rows": ("RMQS-6.06", "RMQS-1.01")}, True),
        ({"rule": "beats", "rows": ("RMQS-1.01",)}, False),
        ({"rule": "wire-legal"}, False),
        ({"rule": "beats", "protocol": "pzq"}, False),
        ({"id": "RMQS-6.06", "criteria": ("beats", "wire-legal")}, True),  # as files before 0.3 say it
        ({"id": "RMQS-6.06"}, True),
        ({"id": "RMQS-6.06", "criteria": (CRITERION,)}, False),
        ({"id": "RMQS-1.01"}, False),
    ],
)
def test_a_violated_rule_is_known_by_its_name_and_its_row(entry: dict[str, Any], is_known: bool) -> None:
    shown = news(known(**entry), judgement(Verdict.PASS, "beats"))
    assert [each.name for each in shown] == ["beats"] * (not is_known)


def test_a_known_failure_explains_what_rules_found_in_its_run() -> None:
    file = known(criteria=(CRITERION,))
    assert news(file, judgement(Verdict.FAIL, "beats", criterion=CRITERION)) == []
    assert len(news(file, judgement(Verdict.FAIL, "beats", criterion="in-time"))) == 1


def test_a_row_that_only_names_rules_says_nothing_of_the_verdict() -> None:
    file = known(criteria=("beats",))
    assert foresee(file, judgement(Verdict.PASS)) is None
    assert apply([result(Verdict.PASS)], file)[0].tags == ()
    assert foresee(file, judgement(Verdict.FAIL, criterion="beats")) is True  # may be called so, too


def rule(*rows: str) -> RuleResult:
    return RuleResult("beats", "rabbitmq-stream", "", "MUST", Verdict.FAIL, rows, "silent for 9 s")


def test_a_rule_that_is_known_in_some_rows_is_split() -> None:
    file = known(Defect("timer", "no timer"), rule="beats", rows=("RMQS-1.01",))
    rows = apply([result(Verdict.FAIL)], known(criteria=(CRITERION,)))
    found = apply_rules([rule("RMQS-1.01", "RMQS-2.01", "RMQS-6.06")], file, rows)
    assert [(one.rows, one.tags, one.cause, one.is_new) for one in found] == [
        (("RMQS-1.01",), ("expected",), "no timer", False),
        (("RMQS-2.01",), (), "", True),
        (("RMQS-6.06",), ("expected",), "the reader dies", False),  # explained by the row
    ]
    assert causes([*rows, *found]) == ["the reader dies", "no timer"]


@pytest.mark.parametrize(
    ("entry", "verdict", "surprises"),
    [
        ({"rows": ("RMQS-6.06",)}, Verdict.PASS, 1),
        ({"rows": ("RMQS-6.06",)}, Verdict.INCONCLUSIVE, 0),
        ({"rows": ("RMQS-6.06", "RMQS-1.01")}, Verdict.PASS, 0),  # the other row was not run
        ({"rows": ("RMQS-6.06",), "sometimes": True}, Verdict.PASS, 0),
        ({}, Verdict.PASS, 0),
    ],
)
def test_a_rule_that_no_row_violates_any_more(
    entry: dict[str, Any], verdict: Verdict, surprises: int
) -> None:
    found = apply_rules([], known(rule="beats", **entry), [result(verdict)])
    assert [one.tags for one in found] == [("unexpected pass",)] * surprises


def test_another_verdict_than_the_expected_one_is_no_known_failure() -> None:
    assert apply([result(Verdict.HARNESS_ERROR)], known())[0].tags == ()


def test_another_variant_is_another_row() -> None:
    assert apply([result(Verdict.FAIL)], known(variant="nats"))[0].tags == ()
